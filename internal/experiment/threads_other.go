//go:build !linux

package experiment

// threadsWaited is unknown here: only Linux tells how long a thread waited for a processor.
func threadsWaited() waited { return waited{} }
