package workers

import (
	"testing"

	"spillway/workers/service"
)

func TestAWindowReplacesTheUsualSharesUntilItCloses(t *testing.T) {
	t.Parallel()
	f := NewFailing(service.Shares{Refused: 1}, 1)
	if got := f.draw(1, 1); got != service.Refused {
		t.Errorf("outside the window the fate is %v", got)
	}
	f.Open(service.Shares{Transient: 1})
	if got := f.draw(1, 1); got != service.Transient {
		t.Errorf("in the window the fate is %v, want its own share in place of the usual", got)
	}
	f.Open(service.Shares{})
	if got := f.draw(1, 1); got != service.None {
		t.Errorf("in a window without failures the fate is %v", got)
	}
	f.Close()
	if got := f.draw(1, 1); got != service.Refused {
		t.Errorf("after the window the fate is %v", got)
	}
	if got := f.Simulated(); got != 3 {
		t.Errorf("%d marks of 3 fates", got)
	}
}

func TestTheFateOfAnAttemptIsTheSameOnEveryWorker(t *testing.T) {
	t.Parallel()
	shares := service.Shares{Transient: 0.3, Permanent: 0.2, Refused: 0.1, Unknown: 0.1}
	one, other, reseeded := NewFailing(shares, 1), NewFailing(shares, 1), NewFailing(shares, 2)
	differ := 0
	for seq := range int64(500) {
		if one.draw(seq, 2) != other.draw(seq, 2) {
			t.Fatalf("message %d meets different fates", seq)
		}
		if one.draw(seq, 2) != reseeded.draw(seq, 2) {
			differ++
		}
	}
	if differ == 0 {
		t.Error("the seed changes nothing")
	}
}
