package publish

// Order returns what the seq-th order asks for, whatever became of its message on purpose: the business row is good even
// where the event about it is spoilt.
func (f *Factory) Order(seq int64) (sku string, count int) {
	d := f.draw(seq)
	return d.sku, d.count
}
