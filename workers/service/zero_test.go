package service_test

import (
	"testing"
	"time"

	"spillway/workers/service"
)

func TestATimeIsZeroWhenEveryDrawIs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		distribution    string
		mean, low, high time.Duration
		zero            bool
	}{
		"nothing fixed":          {service.Fixed, 0, 0, 0, true},
		"a mean":                 {service.Fixed, 1, 0, 0, false},
		"an exponential nothing": {service.Exponential, 0, 0, 0, true},
		"a uniform nothing":      {service.Uniform, time.Second, 0, 0, true},
		"a uniform something":    {service.Uniform, 0, 0, time.Hour, false},
	} {
		got, err := service.NewTime(row.distribution, row.mean, row.low, row.high, 0, 1)
		if err != nil || got.IsZero() != row.zero {
			t.Errorf("%s: zero is %v (%v), want %v", name, got.IsZero(), err, row.zero)
		}
		if draw := got.Draw(3, 1); (draw == 0) != row.zero {
			t.Errorf("%s: draws %v", name, draw)
		}
	}
}
