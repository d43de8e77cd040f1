//go:build !linux

package loadgen

// NewAlarm returns nil: the runtime's timer does the whole of a sleep.
func NewAlarm() Alarm { return nil }
