package experiment

import (
	"errors"
	"slices"
	"testing"
	"time"

	"spillway/internal/profile"
	"spillway/loadgen/arrival"
)

func TestAShapeScalesWithRateAndDuration(t *testing.T) {
	t.Parallel()
	parts := []profile.ShapePart{
		{Kind: "ramp", Share: 1, From: 0, To: 1},
		{Kind: "spike", Share: 1, Level: 0.5, Peak: 1.5, At: 0.4, Width: 0.2},
		{Kind: "steps", Share: 1, Levels: []float64{0.2, 0.6}},
		{Kind: "sine", Share: 1, Level: 1, Amplitude: 0.5, Cycles: 2},
		{Kind: "flat", Share: 4, Level: 0.25},
	}
	for _, tt := range []struct {
		name     string
		load     profile.Load
		offered  int64
		rateAt   time.Duration
		wantRate float64
	}{
		{"without a shape the load is flat, warm-up included", profile.Load{Rate: 100, Warmup: 2 * time.Second, Duration: 8 * time.Second}, 1000, time.Second, 100},
		{"parts share the duration", profile.Load{Rate: 100, Duration: 8 * time.Second, Shape: parts}, 50 + 70 + 40 + 100 + 100, 7 * time.Second, 25},
		{"twice the rate is twice the arrivals", profile.Load{Rate: 200, Duration: 8 * time.Second, Shape: parts}, 2 * 360, 1500 * time.Millisecond, 300},
		{"twice the duration is, too", profile.Load{Rate: 100, Duration: 16 * time.Second, Shape: parts}, 2 * 360, 14 * time.Second, 25},
		{"the warm-up has the level with which the shape begins", profile.Load{Rate: 100, Warmup: 2 * time.Second, Duration: 4 * time.Second,
			Shape: []profile.ShapePart{{Kind: "ramp", Share: 1, From: 0.5, To: 1}}}, 100 + 300, time.Second, 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			shape, err := shapeOf(&tt.load, nil)
			if err != nil {
				t.Fatal(err)
			}
			process, err := arrival.FromShape(shape, arrival.Constant, 1)
			if err != nil {
				t.Fatal(err)
			}
			if process.Total() != tt.offered || shape.Span() != tt.load.Warmup+tt.load.Duration {
				t.Errorf("%d arrivals in %v, want %d in %v", process.Total(), shape.Span(), tt.offered, tt.load.Warmup+tt.load.Duration)
			}
			if got := shape.Rate(tt.rateAt); got != tt.wantRate {
				t.Errorf("the rate at %v is %v, want %v", tt.rateAt, got, tt.wantRate)
			}
		})
	}
}

func TestAReplayPlaysForAsLongAsItsPartLasts(t *testing.T) {
	t.Parallel()
	const second = time.Second
	recorded := Replays{"a.csv": {Times: []time.Duration{0, second / 2, second / 2, 3 * second, 5 * second}}}
	for name, row := range map[string]struct {
		duration time.Duration
		want     []time.Duration
	}{
		"longer than the file":  {10 * second, []time.Duration{0, second / 2, second / 2, 3 * second, 5 * second}},
		"shorter than the file": {4 * second, []time.Duration{0, second / 2, second / 2, 3 * second}},
	} {
		shape, err := shapeOf(&profile.Load{Duration: row.duration, Shape: []profile.ShapePart{{Kind: "replay", Share: 1, File: "a.csv"}}}, recorded)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		process, err := arrival.FromShape(shape, arrival.Constant, 1)
		if err != nil {
			t.Fatal(err)
		}
		var got []time.Duration
		for due, more := process.Next(); more; due, more = process.Next() {
			got = append(got, due)
		}
		if !slices.Equal(got, row.want) || shape.Span() != row.duration {
			t.Errorf("%s: arrivals at %v over %v, want %v", name, got, shape.Span(), row.want)
		}
	}
	late := Replays{"a.csv": {Times: []time.Duration{0}}}
	if _, err := (Replays{}).part("b.csv", second); !errors.Is(err, arrival.ErrNoTimes) {
		t.Errorf("a file without arrivals: %v", err)
	}
	if got := late.report(); len(got) != 1 || got[0].File != "a.csv" || got[0].Arrivals != 1 {
		t.Errorf("reported as %+v", got)
	}
}

func TestSizesKeepToTheirDistribution(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sizes       profile.Sizes
		least, most int
	}{
		"fixed is load.size":       {profile.Sizes{Distribution: "fixed"}, 600, 600},
		"uniform has both ends":    {profile.Sizes{Distribution: "uniform", Min: 480, Max: 483}, 480, 483},
		"lognormal is clipped":     {profile.Sizes{Distribution: "lognormal", Median: 500, Sigma: 3, Min: 490, Max: 700}, 490, 700},
		"a list has what it lists": {profile.Sizes{Distribution: "list", List: []profile.SizeWeight{{Bytes: 480, Weight: 1}, {Bytes: 900, Weight: 9}}}, 480, 900},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			size, err := sizeOf(&profile.Load{Size: 600, Sizes: tt.sizes})
			if err != nil {
				t.Fatal(err)
			}
			least, most := 1<<30, 0
			for seq := range int64(2000) {
				b := size.Bytes(1, seq)
				least, most = min(least, b), max(most, b)
			}
			if least != tt.least || most != tt.most {
				t.Errorf("drew %d to %d, want %d to %d", least, most, tt.least, tt.most)
			}
		})
	}
}

func TestAHotSKUHasItsShareWhateverTheRest(t *testing.T) {
	t.Parallel()
	for _, distribution := range []string{"uniform", "zipf"} {
		keys, err := keysOf(&profile.Load{SKUs: 100, SKUDraw: profile.SKUDraw{Distribution: distribution, Exponent: 1, HotShare: 0.5}})
		if err != nil {
			t.Fatal(err)
		}
		hot := 0
		for seq := range int64(10_000) {
			if keys.Index(1, seq) == 0 {
				hot++
			}
		}
		if hot < 4800 || hot > 5200 {
			t.Errorf("%s: the hot SKU was drawn %d times of 10000, want about half", distribution, hot)
		}
	}
}
