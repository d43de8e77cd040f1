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
