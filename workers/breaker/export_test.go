package breaker

// TicketGeneration shows a ticket's generation to the model in the tests.
func TicketGeneration(t Ticket) uint64 { return t.generation }
