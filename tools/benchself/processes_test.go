package main

import (
	"net"
	"net/url"
	"os"
	"slices"
	"testing"
)

func TestListeningSocketsAreFoundByTheirPort(t *testing.T) {
	t.Parallel()
	const text = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1628 00000000:0000 0A 00000000:00000000 00:00000000 00000000   106        0 11111 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1628 0100007F:9C40 01 00000000:00000000 00:00000000 00000000   106        0 22222 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:1629 00000000:0000 0A 00000000:00000000 00:00000000 00000000   106        0 33333 1 0000000000000000 100 0 0 10 0
`
	if got := listening(text, 0x1628); !slices.Equal(got, []string{"11111"}) {
		t.Errorf("inodes %v, want 11111: the one that listens", got)
	}
}

func TestAServerIsFoundByItsPortAndItsTimeCounted(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("this system does not tell")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if got := listener(port); got != os.Getpid() {
		t.Errorf("process %d listens on our port, want %d", got, os.Getpid())
	}
	_ = l.Close()
	if got := listener(port); got != 0 {
		t.Errorf("process %d listens on a port that is closed", got)
	}
	if got := treesCPU(0, 1<<30); got[0] != 0 || got[1] != 0 {
		t.Errorf("no process took %v", got)
	}
}

func TestTheTimeOfAProcessHoldsThatOfAllBelowIt(t *testing.T) {
	t.Parallel()
	all := map[int]times{}
	for _, text := range []string{
		"10 (postgres) S 1 10 10 0 -1 0 0 0 0 0 5 6 7 8 20 0 1 0 0 0",
		"11 (post (gres) 1) R 10 10 10 0 -1 0 0 0 0 0 100 1 0 0 20 0 1 0 0 0",
		"12 (worker) S 11 10 10 0 -1 0 0 0 0 0 1000 0 0 0 20 0 1 0 0 0",
		"13 (other) S 1 10 10 0 -1 0 0 0 0 0 9000 0 0 0 20 0 1 0 0 0",
	} {
		pid, parsed, ok := parseStat(text)
		if !ok {
			t.Fatalf("%q is not understood", text)
		}
		all[pid] = parsed
	}
	if got := sumTree(all, 10); got != 5+6+7+8+100+1+1000 {
		t.Errorf("%d ticks", got)
	}
	for _, text := range []string{"", "10 postgres S 1", "x (a) S 1 1 1 0 -1 0 0 0 0 0 5 6 7 8", "10 (a) S 1", "10 (a) S 1 1 1 0 -1 0 0 0 0 0 5 x 7 8"} {
		if _, _, ok := parseStat(text); ok {
			t.Errorf("%q is taken for a process", text)
		}
	}
}

func TestAnAddressWithoutAPortHasTheProtocols(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"amqp://a:1234/": 1234, "amqp://a/": 5672, "amqps://a/": 5671} {
		at, err := url.Parse(text)
		if got := portOf(at); err != nil || got != want {
			t.Errorf("%s has port %d, %v; want %d", text, got, err, want)
		}
	}
}
