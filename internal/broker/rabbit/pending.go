package rabbit

// pending is the publishes of one channel that have no answer yet, by delivery tag. The broker numbers the publishes of a
// channel from 1 in the order in which they come, so a publish's tag is its place in a row. Answers come one by one or for
// all up to a tag, mostly in order; what has been answered leaves the row as soon as everything before it has.
//
// The row is a ring that doubles when it is full. It holds the window and, for as long as the oldest publish has no answer,
// those after it that have: for a broker that answers at all, no more than it takes in meanwhile.
type pending struct {
	ring []slot // its length is a power of two
	head uint64 // tag of the oldest in the ring, from 1 on once there was one
	next uint64 // tag of the next publish
	open int    // how many have no answer
}

// slot is one publish.
type slot struct {
	token    uint64
	id       identity
	answered bool
}

// identity is what a return says about the message it brings back. Copies of one message share it; which of them is
// called returned does not matter then.
type identity struct {
	exchange, key, messageID string
	seq                      int64
}

// leastRing is the first size of the ring: the usual window.
const leastRing = 256

func (p *pending) at(tag uint64) *slot { return &p.ring[tag&uint64(len(p.ring)-1)] }

// add puts a publish at the end of the row.
func (p *pending) add(s slot) {
	if p.next == 0 {
		p.head, p.next = 1, 1
	}
	if int(p.next-p.head) == len(p.ring) {
		p.grow()
	}
	*p.at(p.next) = s
	p.next++
	p.open++
}

func (p *pending) grow() {
	old := *p
	p.ring = make([]slot, max(leastRing, 2*len(old.ring)))
	for tag := old.head; tag < old.next; tag++ {
		*p.at(tag) = *old.at(tag)
	}
}

// dropLast takes the last publish out again, if it is the given one and has no answer.
func (p *pending) dropLast(token uint64) bool {
	if p.next == p.head {
		return false
	}
	s := p.at(p.next - 1)
	if s.token != token || s.answered {
		return false
	}
	*s = slot{}
	p.next--
	p.open--
	return true
}

// answer tells found of each publish that the tag answers, in order, and takes it out. An answer for a tag that is not in
// the row, or for one that has its answer, changes nothing.
func (p *pending) answer(tag uint64, multiple bool, found func(slot)) {
	if tag == 0 && multiple { // all so far (specification, basic.ack)
		tag = p.next - 1
	}
	if tag < p.head || tag >= p.next {
		return
	}
	from := tag
	if multiple {
		from = p.head
	}
	for ; from <= tag; from++ {
		if s := p.at(from); !s.answered {
			s.answered = true
			p.open--
			found(*s)
		}
	}
	p.trim()
}

// trim moves the head over what is answered.
func (p *pending) trim() {
	for p.head < p.next && p.at(p.head).answered {
		*p.at(p.head) = slot{} // let go of its texts
		p.head++
	}
}

// rest tells found of everything that has no answer, and empties the row.
func (p *pending) rest(found func(slot)) {
	if p.next > p.head {
		p.answer(p.next-1, true, found)
	}
}
