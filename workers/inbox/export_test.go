package inbox

// SQLApplyBatch is the batch's statement, for the loop that it is held against.
const SQLApplyBatch = sqlApplyBatch

// Waiting returns how many calls are in the queue.
func (b *Batch) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}
