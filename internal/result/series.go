package result

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
)

// Gauge is a level that may not be known. The zero value is unknown, and an empty cell.
type Gauge struct {
	value float64
	known bool
}

// Level returns a known gauge.
func Level(x float64) Gauge {
	p := Number(x)
	if p == nil {
		return Gauge{}
	}
	return Gauge{value: *p, known: true}
}

// Row is one second of a run. Counts are of that second, gauges are the levels at its end.
type Row struct {
	Elapsed float64 // seconds since the run's start, at the end of the step
	Phase   string

	Offered, Sent, Confirmed, Returned, Nacked, Unknown, Shed            int64
	Delivered, Applied, Refused, Duplicates, Acked                       int64
	Retried, ReturnedFromRetry, Parked                                   int64
	InFlight, Ready, Unacked, RetryDebt                                  Gauge // messages
	OldestWork, OldestRetry, OldestParking, OldestUnsettled, BlockedSecs Gauge // seconds
	BreakerState                                                         string
	Fault                                                                string // kinds under way, joined by "+"; "" is none
}

// column is one column of series.csv.
type column struct {
	name string
	cell func(*Row) string
}

// columns returns the columns in the order of the file. New ones go to the end.
func columns() []column {
	return []column{
		{"elapsed_seconds", func(r *Row) string { return decimal(r.Elapsed) }},
		{"phase", func(r *Row) string { return r.Phase }},
		{"offered", count(func(r *Row) int64 { return r.Offered })},                       // came due
		{"sent", count(func(r *Row) int64 { return r.Sent })},                             // written, republishes included
		{"confirmed", count(func(r *Row) int64 { return r.Confirmed })},                   // outcome of a publish
		{"delivered", count(func(r *Row) int64 { return r.Delivered })},                   // to workers
		{"applied", count(func(r *Row) int64 { return r.Applied })},                       // first-time effects: goodput
		{"retried", count(func(r *Row) int64 { return r.Retried })},                       // copies confirmed in a tier
		{"returned_from_retry", count(func(r *Row) int64 { return r.ReturnedFromRetry })}, // deliveries with an attempt above 1
		{"parked", count(func(r *Row) int64 { return r.Parked })},
		{"shed", count(func(r *Row) int64 { return r.Shed })},             // due but not sent
		{"duplicates", count(func(r *Row) int64 { return r.Duplicates })}, // deliveries absorbed by the inbox
		{"ready", gauge(func(r *Row) Gauge { return r.Ready })},           // in the work queue
		{"unacked", gauge(func(r *Row) Gauge { return r.Unacked })},       // delivered, unsettled
		{"retry_debt", gauge(func(r *Row) Gauge { return r.RetryDebt })},  // in tiers
		{"oldest_work_seconds", gauge(func(r *Row) Gauge { return r.OldestWork })},
		{"oldest_retry_seconds", gauge(func(r *Row) Gauge { return r.OldestRetry })},
		{"oldest_unsettled_seconds", gauge(func(r *Row) Gauge { return r.OldestUnsettled })},
		{"in_flight", gauge(func(r *Row) Gauge { return r.InFlight })}, // published, unconfirmed
		{"breaker_state", func(r *Row) string { return r.BreakerState }},
		{"fault", func(r *Row) string { return r.Fault }},
		{"returned", count(func(r *Row) int64 { return r.Returned })}, // outcome of a publish
		{"nacked", count(func(r *Row) int64 { return r.Nacked })},     // outcome of a publish
		{"unknown", count(func(r *Row) int64 { return r.Unknown })},   // outcome of a publish
		{"refused", count(func(r *Row) int64 { return r.Refused })},   // business refusals committed
		{"acked", count(func(r *Row) int64 { return r.Acked })},       // deliveries settled
		{"oldest_parking_seconds", gauge(func(r *Row) Gauge { return r.OldestParking })},
		{"blocked_seconds", gauge(func(r *Row) Gauge { return r.BlockedSecs })}, // of this second
	}
}

func count(of func(*Row) int64) func(*Row) string {
	return func(r *Row) string { return strconv.FormatInt(of(r), 10) }
}

func gauge(of func(*Row) Gauge) func(*Row) string {
	return func(r *Row) string {
		g := of(r)
		if !g.known {
			return ""
		}
		return decimal(g.value)
	}
}

// decimal writes a number to the microsecond, without zeros at its end.
func decimal(x float64) string {
	const micro = 1e6
	return strconv.FormatFloat(math.Round(x*micro)/micro, 'f', -1, 64)
}

// SeriesColumns returns the header of series.csv.
func SeriesColumns() []string {
	var names []string
	for _, c := range columns() {
		names = append(names, c.name)
	}
	return names
}

// SeriesWriter writes series.csv, one row per second. Each row is flushed, so that a run that dies leaves its series.
// One goroutine uses it; the caller closes the underlying file.
type SeriesWriter struct {
	csv     *csv.Writer
	columns []column
}

// NewSeriesWriter writes the header.
func NewSeriesWriter(w io.Writer) (*SeriesWriter, error) {
	s := &SeriesWriter{csv: csv.NewWriter(w), columns: columns()}
	if err := s.line(SeriesColumns()); err != nil {
		return nil, err
	}
	return s, nil
}

// Write writes one row.
func (s *SeriesWriter) Write(r Row) error {
	cells := make([]string, len(s.columns))
	for i, c := range s.columns {
		cells[i] = c.cell(&r)
	}
	return s.line(cells)
}

func (s *SeriesWriter) line(cells []string) error {
	if err := s.csv.Write(cells); err != nil {
		return err
	}
	s.csv.Flush()
	return s.csv.Error()
}
