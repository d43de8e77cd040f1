package experiment

import (
	"context"
	"fmt"
	"time"

	"spillway/internal/postgres"
	"spillway/internal/profile"
	"spillway/loadgen"
	"spillway/loadgen/arrival"
	"spillway/loadgen/draw"
	"spillway/loadgen/publish"
)

// load offers the messages of a run; see loadgen.Generator.
type load interface {
	Run(ctx context.Context) error
	Walked() <-chan struct{}
	Stop()
}

// newLoad makes the load side, with or without a schedule.
func (r *run) newLoad() (load, error) {
	if r.o.Profile.Load.Closed() {
		return r.newClosed()
	}
	return r.newGenerator()
}

// newClosed makes the load that keeps every window full. It has no schedule, so there is nothing to catch up with.
func (r *run) newClosed() (*loadgen.Closed, error) {
	factory, err := r.factory()
	if err != nil {
		return nil, err
	}
	l := &r.o.Profile.Load
	cfg := loadgen.ClosedConfig{Base: r.base, Start: leadTime, Warmup: l.Warmup, Span: l.Warmup + l.Duration}
	for i := range l.Publishers {
		cfg.Fillers = append(cfg.Fillers, r.publisher(i, factory, nil, r.loadObserver()))
	}
	return loadgen.NewClosed(cfg), nil
}

// newGenerator makes the load on a schedule: the shape, and what takes its arrivals to the broker.
func (r *run) newGenerator() (*loadgen.Generator, error) {
	l := &r.o.Profile.Load
	shape, err := shapeOf(l, r.o.Replays)
	if err != nil {
		return nil, fmt.Errorf("load.shape: %w", err)
	}
	factory, err := r.factory()
	if err != nil {
		return nil, err
	}
	cfg := loadgen.Config{
		Base: r.base, Start: leadTime, Warmup: l.Warmup, Shape: shape, Arrivals: l.Arrivals, Seed: r.seed, Lag: r.lag,
		Alarm: loadgen.NewAlarm,
	}
	if cfg.Sinks, err = r.sinks(shape, factory); err != nil {
		return nil, err
	}
	return loadgen.New(cfg)
}

// shapeOf joins the warm-up, at the level with which the shape begins, and the parts of the shape.
func shapeOf(l *profile.Load, replays Replays) (arrival.Shape, error) {
	if len(l.Shape) == 0 {
		return arrival.NewFlat(l.Rate, l.Warmup+l.Duration)
	}
	total := 0.0
	for _, part := range l.Shape {
		total += part.Share
	}
	parts := make([]arrival.Shape, 0, len(l.Shape)+1)
	for _, part := range l.Shape {
		shape, err := partOf(part, l.Rate, time.Duration(float64(l.Duration)*part.Share/total), replays)
		if err != nil {
			return nil, err
		}
		parts = append(parts, shape)
	}
	if l.Warmup > 0 {
		warmup, err := arrival.NewFlat(parts[0].Rate(0), l.Warmup)
		if err != nil {
			return nil, err
		}
		parts = append([]arrival.Shape{warmup}, parts...)
	}
	return arrival.NewSequence(parts...)
}

// partOf turns one part, whose levels are relative to the rate, into a shape.
func partOf(p profile.ShapePart, rate float64, span time.Duration, replays Replays) (arrival.Shape, error) {
	of := func(share float64) time.Duration { return time.Duration(float64(span) * share) }
	switch p.Kind {
	case "ramp":
		return arrival.NewRamp(p.From*rate, p.To*rate, span)
	case "steps":
		rates := make([]float64, len(p.Levels))
		for i, level := range p.Levels {
			rates[i] = level * rate
		}
		return arrival.NewSteps(rates, span)
	case "spike":
		return arrival.NewSpike(p.Level*rate, p.Peak*rate, of(p.At), of(p.Width), span)
	case "sine":
		return arrival.NewSine(p.Level*rate, p.Amplitude*rate, time.Duration(float64(span)/p.Cycles), span)
	case profile.PartReplay:
		return replays.part(p.File, span)
	default: // the profile knows no other kind
		return arrival.NewFlat(p.Level*rate, span)
	}
}

func (r *run) factory() (*publish.Factory, error) {
	l := &r.o.Profile.Load
	size, err := sizeOf(l)
	if err != nil {
		return nil, fmt.Errorf("load.sizes: %w", err)
	}
	keys, err := keysOf(l)
	if err != nil {
		return nil, fmt.Errorf("load.sku_draw: %w", err)
	}
	f := &publish.Factory{
		Base: r.base, Run: r.o.RunID, Seed: r.seed, Exchange: r.plan.Orders, Size: size, Keys: keys,
		CountMin: l.CountMin, CountMax: l.CountMax,
	}
	for i := range l.SKUs {
		f.SKUs = append(f.SKUs, postgres.SKU(i))
	}
	for _, b := range l.Bad {
		f.Bad = append(f.Bad, publish.Bad{Kind: b.Kind, Share: b.Share})
	}
	return f, nil
}

func sizeOf(l *profile.Load) (draw.Size, error) {
	s := &l.Sizes
	switch s.Distribution {
	case "uniform":
		return draw.UniformSize(s.Min, s.Max)
	case "lognormal":
		return draw.LognormalSize(s.Median, s.Sigma, s.Min, s.Max)
	case "list":
		list := make([]draw.Weight, len(s.List))
		for i, w := range s.List {
			list[i] = draw.Weight{Bytes: w.Bytes, Weight: w.Weight}
		}
		return draw.WeightedSize(list)
	default:
		return draw.FixedSize(l.Size)
	}
}

func keysOf(l *profile.Load) (keys draw.Keys, err error) {
	if l.SKUDraw.Distribution == "zipf" {
		keys, err = draw.ZipfKeys(l.SKUDraw.Exponent, l.SKUs)
	} else {
		keys, err = draw.UniformKeys(l.SKUs)
	}
	if err != nil || l.SKUDraw.HotShare == 0 {
		return keys, err
	}
	return keys.WithHot(l.SKUDraw.HotShare)
}
