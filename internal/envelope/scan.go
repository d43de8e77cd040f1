package envelope

// scan reads the bodies that this build writes, and their like, at a tenth of what encoding/json takes. It is a shortcut and
// no second opinion: ok is false for whatever it is not sure of (an escape, a byte outside ASCII, a name that it does not
// know, a number with a fraction, bad JSON), and then encoding/json decides. What it does read, it reads as that package
// would; a fuzz test compares the two.
func scan(body []byte) (o Order, ok bool) {
	s := scanner{rest: string(body)} // one copy, which all texts of the order share
	s.object(func(name string) bool { return s.orderField(&o, name) })
	s.blanks()
	return o, !s.failed && s.rest == ""
}

// orderField reads the value of a field of the order. It reports false for a name that it does not know.
func (s *scanner) orderField(o *Order, name string) bool {
	switch name {
	case "id":
		o.ID = s.text()
	case "type":
		o.Type = s.text()
	case "schema_version":
		o.SchemaVersion = int(s.number())
	case "occurred_at":
		s.failed = s.failed || o.OccurredAt.UnmarshalText([]byte(s.text())) != nil
	case "producer":
		o.Producer = s.text()
	case "correlation_id":
		o.CorrelationID = s.text()
	case "causation_id":
		o.CausationID = s.text()
	case "aggregate":
		s.object(func(name string) bool { return s.aggregateField(&o.Aggregate, name) })
	case "data":
		s.object(func(name string) bool { return s.dataField(&o.Data, name) })
	case "pad":
		s.text()
	default:
		return false
	}
	return true
}

func (s *scanner) aggregateField(a *Aggregate, name string) bool {
	switch name {
	case "type":
		a.Type = s.text()
	case "id":
		a.ID = s.text()
	case "version":
		a.Version = s.number()
	default:
		return false
	}
	return true
}

func (s *scanner) dataField(d *Data, name string) bool {
	switch name {
	case "sku":
		d.SKU = s.text()
	case "count":
		d.Count = int(s.number())
	default:
		return false
	}
	return true
}

// scanner takes JSON values off a text. After a failure every value is zero.
type scanner struct {
	rest   string
	failed bool
}

func (s *scanner) fail() { s.rest, s.failed = "", true }

func (s *scanner) blanks() {
	for s.rest != "" && (s.rest[0] == ' ' || s.rest[0] == '\n' || s.rest[0] == '\t' || s.rest[0] == '\r') {
		s.rest = s.rest[1:]
	}
}

// next takes one byte of structure, after blanks, if it is the given one.
func (s *scanner) next(c byte) bool {
	s.blanks()
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *scanner) want(c byte) {
	if !s.next(c) {
		s.fail()
	}
}

// object reads an object whose fields are read by value.
func (s *scanner) object(value func(name string) bool) {
	s.want('{')
	if s.next('}') {
		return
	}
	for !s.failed {
		name := s.text()
		s.want(':')
		if !s.failed && !value(name) {
			s.fail()
		}
		if !s.next(',') {
			break
		}
	}
	s.want('}')
}

// text reads a string of printable ASCII without escapes.
func (s *scanner) text() string {
	s.want('"')
	for i := range len(s.rest) {
		switch c := s.rest[i]; {
		case c == '"':
			text := s.rest[:i]
			s.rest = s.rest[i+1:]
			return text
		case c < 0x20 || c > 0x7e || c == '\\':
			s.fail()
			return ""
		}
	}
	s.fail()
	return ""
}

// maxDigits is how many digits a number may have: as many as always fit into 63 bits.
const maxDigits = 18

// number reads a whole number that does not begin with a zero, unless it is one.
func (s *scanner) number() (n int64) {
	s.blanks()
	i := 0
	for i < len(s.rest) && s.rest[i] >= '0' && s.rest[i] <= '9' {
		n = n*10 + int64(s.rest[i]-'0')
		if i++; i > maxDigits {
			s.fail()
			return 0
		}
	}
	if i == 0 || (s.rest[0] == '0' && i > 1) || i == len(s.rest) || !delimits(s.rest[i]) {
		s.fail()
		return 0
	}
	s.rest = s.rest[i:]
	return n
}

// delimits reports whether a number may end before the byte.
func delimits(c byte) bool {
	return c == ',' || c == '}' || c == ' ' || c == '\n' || c == '\t' || c == '\r'
}
