package stack

import (
	"fmt"
	"io"
	"sync"
)

// lines writes whole lines for several goroutines.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format+"\n", args...) // progress that cannot be shown must not stop the work
}
