package experiment

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"spillway/internal/profile"
	"spillway/internal/result"
	"spillway/loadgen/arrival"
)

// Replays are the files of arrival times that a profile names, by the name that it uses.
type Replays map[string]Replay

// Replay is what was read of one file.
type Replay struct {
	Times  []time.Duration // offsets from the first, not falling
	SHA256 string          // of the file, in hexadecimal: what a result is repeated with
}

// Reader returns a check of profiles that reads the files which they name, and keeps what it read. Relative names count from
// folder. It is done before anything is started, and every bad line is a problem of the profile.
func (all Replays) Reader(folder string) profile.Check {
	return func(p *profile.Profile, report func(path, message string)) {
		for i, part := range p.Load.Shape {
			if part.Kind != profile.PartReplay || part.File == "" || all.has(part.File) {
				continue
			}
			one, err := readReplay(part.File, folder)
			all[part.File] = one
			for _, problem := range each(err) {
				report(fmt.Sprintf("load.shape.%d.file", i), fmt.Sprintf("%s: %v", profile.Printable(part.File), problem))
			}
		}
	}
}

// each returns the errors that were joined into one; none of nil.
func each(err error) []error {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &joined):
		return joined.Unwrap()
	default:
		return []error{err}
	}
}

func (all Replays) has(name string) bool {
	_, ok := all[name]
	return ok
}

func readReplay(name, folder string) (r Replay, err error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(folder, name)
	}
	file, err := os.Open(name)
	if err != nil {
		return r, err
	}
	defer file.Close()
	sum := sha256.New()
	if r.Times, err = arrival.ReadReplay(io.TeeReader(file, sum)); err != nil {
		return Replay{}, err
	}
	r.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return r, nil
}

// part plays a file for as long as its part lasts: what was due later is left out, and after the last arrival comes nothing.
func (all Replays) part(name string, span time.Duration) (arrival.Shape, error) {
	times := all[name].Times
	n, _ := slices.BinarySearch(times, span)
	if n == 0 {
		return nil, fmt.Errorf("%s has no arrival within %v: %w", profile.Printable(name), span, arrival.ErrNoTimes)
	}
	played, err := arrival.NewReplay(times[:n])
	if err != nil || played.Span() == span {
		return played, err
	}
	rest, err := arrival.NewFlat(0, span-played.Span())
	if err != nil {
		return nil, err
	}
	return arrival.NewSequence(played, rest)
}

// report says which files a run took its arrivals from, in the order of their names.
func (all Replays) report() []result.Replay {
	out := []result.Replay{}
	for name, r := range all {
		out = append(out, result.Replay{File: name, SHA256: r.SHA256, Arrivals: int64(len(r.Times))})
	}
	slices.SortFunc(out, func(a, b result.Replay) int { return cmp.Compare(a.File, b.File) })
	return out
}
