package ledger

// LivePages returns how many pages still hold full records.
func (l *Ledger) LivePages() (n int) {
	for _, p := range l.table() {
		if p.records != nil {
			n++
		}
	}
	return n
}

// KeptBytes returns how many bytes the compact pages keep of their messages.
func (l *Ledger) KeptBytes() (n int) {
	for _, p := range l.table() {
		n += len(p.compact)
	}
	return n
}

// PageMessages is how many messages share a page.
const PageMessages = pageSize
