package rabbit

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// tokens collects what an answer finds.
func tokens(p *pending, tag uint64, multiple bool) (found []uint64) {
	p.answer(tag, multiple, func(s slot) { found = append(found, s.token) })
	return found
}

func TestAnswersFindTheirPublishes(t *testing.T) {
	t.Parallel()
	var p pending
	for token := range uint64(6) { // tags 1 to 6
		p.add(slot{token: token})
	}
	for _, step := range []struct {
		name     string
		tag      uint64
		multiple bool
		want     []uint64
		open     int
	}{
		{"one in the middle", 3, false, []uint64{2}, 5},
		{"the same again", 3, false, nil, 5},
		{"all up to one leaves out what is answered", 4, true, []uint64{0, 1, 3}, 2},
		{"one that is gone", 2, false, nil, 2},
		{"one that was never sent", 7, true, nil, 2},
		{"tag zero is all so far", 0, true, []uint64{4, 5}, 0},
		{"nothing is left", 0, true, nil, 0},
	} {
		if got := tokens(&p, step.tag, step.multiple); !slices.Equal(got, step.want) || p.open != step.open {
			t.Errorf("%s: found %v with %d open, want %v with %d", step.name, got, p.open, step.want, step.open)
		}
	}
}

func TestTheLastPublishCanBeTakenBack(t *testing.T) {
	t.Parallel()
	var p pending
	if p.dropLast(1) {
		t.Error("something was taken out of nothing")
	}
	p.add(slot{token: 1})
	p.add(slot{token: 2})
	if p.dropLast(1) || !p.dropLast(2) || p.open != 1 {
		t.Errorf("%d are open", p.open)
	}
	tokens(&p, 1, false)
	if p.dropLast(1) {
		t.Error("an answered one was taken back")
	}
}

// TestEveryPublishIsAnsweredOnceUnderAnyOrder compares with a plain map, for random answers around a stuck head.
func TestEveryPublishIsAnsweredOnceUnderAnyOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var p pending
	open := map[uint64]bool{} // tags
	next := uint64(1)
	for range 20000 {
		if random.IntN(2) == 0 {
			p.add(slot{token: next})
			open[next] = true
			next++
			continue
		}
		tag, multiple := max(1, next-min(next, random.Uint64N(600))), random.IntN(20) == 0
		for _, token := range tokens(&p, tag, multiple) {
			if !open[token] || token > tag {
				t.Fatalf("tag %d (multiple %v) answered %d", tag, multiple, token)
			}
			delete(open, token)
		}
		if p.open != len(open) {
			t.Fatalf("%d are open, want %d", p.open, len(open))
		}
	}
	p.rest(func(s slot) { delete(open, s.token) })
	if len(open) != 0 || p.open != 0 {
		t.Errorf("%d were never answered", len(open))
	}
}

// BenchmarkPending adds and answers publishes fifty at a time, with a window of 200 open.
func BenchmarkPending(b *testing.B) {
	var p pending
	found := 0
	for range 200 {
		p.add(slot{})
	}
	b.ReportAllocs()
	for b.Loop() {
		p.add(slot{token: p.next})
		if p.next%50 == 0 {
			p.answer(p.next-200, true, func(slot) { found++ })
		}
	}
	b.ReportMetric(float64(p.open), "open")
}
