package main

import (
	"os"
	"testing"
)

func TestTheShareOfOthersIsAShare(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/stat"); err != nil {
		t.Skip("this system does not tell")
	}
	idle, all := processors()
	if idle <= 0 || all <= idle {
		t.Errorf("%d ticks idle of %d", idle, all)
	}
	if got := others(t.Context()); got < 0 || got > 1 {
		t.Errorf("others use %v of the machine", got)
	}
}
