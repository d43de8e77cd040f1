package crew

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic reads the clock that Go's runtime takes its monotonic readings from.
func monotonic() (time.Duration, bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
