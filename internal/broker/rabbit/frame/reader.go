package frame

// reader takes values off a payload: out of bytes what is looked at and forgotten, out of a string what is kept, since
// parts of a string share its memory. After an error every value is zero, and err says what was wrong first.
type reader[T string | []byte] struct {
	rest T
	err  error
}

func (r *reader[T]) fail(what string) {
	if r.err == nil {
		r.err = malformed(what)
	}
	r.rest = r.rest[:0]
}

// take returns the next n bytes, or none when there are fewer.
func (r *reader[T]) take(n int) T {
	if n > len(r.rest) {
		r.fail("a value is cut short")
		return r.rest
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader[T]) skip(n int) { r.take(n) }

func (r *reader[T]) octet() byte {
	if b := r.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

// uint reads an unsigned number of n bytes.
func (r *reader[T]) uint(n int) (v uint64) {
	b := r.take(n)
	for i := range len(b) {
		v = v<<8 | uint64(b[i])
	}
	return v
}

func (r *reader[T]) short() T { return r.take(int(r.octet())) }

func (r *reader[T]) long() T {
	n := r.uint(4)
	if n > uint64(len(r.rest)) {
		r.fail("a long value is cut short")
		return r.rest
	}
	return r.take(int(n))
}
