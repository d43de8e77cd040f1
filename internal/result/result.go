// Package result is what a run leaves behind: result.json, series.csv, and the summary that a person reads. It knows the
// shape of the files, looks numbers up in them by path, and holds thresholds against them. It measures nothing and
// judges nothing else: experiment fills a Result, report, compare and gate read one.
//
// Invariants: keys are added, never renamed (a golden file lists them all); every time is in seconds and every size in
// bytes; NaN and infinity are never written; what was not measured is null, never 0.
package result

import (
	"encoding/json"
	"math"
	"time"
)

// Schema is the version of result.json that this build writes and reads.
const Schema = "spillway.result/1"

// Result is result.json.
type Result struct {
	Schema      string             `json:"schema"`
	Run         Run                `json:"run"`
	Environment Environment        `json:"environment"`
	Profile     json.RawMessage    `json:"profile"` // the effective profile, durations in seconds
	Phases      []Phase            `json:"phases"`
	Faults      []Fault            `json:"faults"`
	Verdict     Verdict            `json:"verdict"`
	Findings    []Finding          `json:"findings"`
	Thresholds  []ThresholdOutcome `json:"thresholds"`
	Messages    Messages           `json:"messages"`
	Rates       Rates              `json:"rates"`
	Latency     Latencies          `json:"latency_seconds"`
	OldestAge   OldestAges         `json:"oldest_age_seconds"`
	RetryStorm  Storm              `json:"retry_storm"`
	Inbox       Inbox              `json:"inbox"`
	Redrive     *Redrive           `json:"redrive"` // null without that phase
	Publish     Publish            `json:"publish"`
	Signals     Signals            `json:"signals"`
	Process     Process            `json:"process"`

	Dir   string   `json:"-"` // the folder that the result was read from or written to
	Files []string `json:"-"` // the run's files in it, for the summary
}

// Run says which run this is.
type Run struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"` // of the profile
	StartedAt  time.Time         `json:"started_at"`
	FinishedAt time.Time         `json:"finished_at"`
	Labels     map[string]string `json:"labels"`
	Version    string            `json:"version"`
	Revision   string            `json:"revision"`
	Seed       uint64            `json:"seed"` // the one that was used, never 0
	ExitCode   int               `json:"exit_code"`
	LoadMode   string            `json:"load_mode"` // "open", or "closed": without a schedule; "" in results before there were modes
	Instances  []Instance        `json:"instances"`
	Replays    []Replay          `json:"replays"` // files that arrivals were taken from; empty for none
}

// Replay is a file of arrival times.
type Replay struct {
	File     string `json:"file"` // as the profile names it
	SHA256   string `json:"sha256"`
	Arrivals int64  `json:"arrivals"` // in the file; the run may have ended before the last
}

// Instance is one generator that shared the run.
type Instance struct {
	ID      int   `json:"id"`
	Offered int64 `json:"offered"` // messages
}

// Environment is what the run ran on.
type Environment struct {
	Host      Host     `json:"host"`
	Broker    Broker   `json:"broker"`
	Postgres  Postgres `json:"postgres"`
	Go        string   `json:"go"`
	Colocated bool     `json:"colocated"` // generator, broker and database on one machine
}

// Host is the generator's machine.
type Host struct {
	OS           string   `json:"os"`
	Kernel       string   `json:"kernel"`
	CPUs         int      `json:"cpus"`
	MemoryBytes  int64    `json:"memory_bytes"`
	StealRatio   *float64 `json:"steal_ratio"`   // CPU time that the hypervisor took, of all; null when unknown
	FsyncSeconds *float64 `json:"fsync_seconds"` // median of a small write and fsync; null when not measured
}

// Broker is the message broker.
type Broker struct {
	Product string `json:"product"`
	Version string `json:"version"`
	Nodes   *int64 `json:"nodes"` // null when not known, without the management API
}

// Postgres is the database, with the settings that bear on throughput.
type Postgres struct {
	Version  string            `json:"version"`
	Settings map[string]string `json:"settings"`
}

// Phase is one stretch of the run. Times are seconds since the run's start.
type Phase struct {
	Name         string  `json:"name"`
	StartSeconds float64 `json:"start_seconds"`
	EndSeconds   float64 `json:"end_seconds"`
}

// Fault is one accident on purpose, and what proves that it happened.
type Fault struct {
	Kind         string             `json:"kind"`
	StartSeconds float64            `json:"start_seconds"` // since the run's start
	EndSeconds   float64            `json:"end_seconds"`
	Evidence     map[string]float64 `json:"evidence"` // marks inside the window by name, such as errors or blocked_seconds
	Storm        *Storm             `json:"storm"`    // null when the fault set off no retries
}

// Verdict is the outcome of a run. The empty verdict is none, so that a forgotten one never reads as a pass.
type Verdict string

// The verdicts.
const (
	Pass    Verdict = "pass"
	Fail    Verdict = "fail"    // a guarantee broken, or a threshold missed
	Invalid Verdict = "invalid" // the measurement cannot be trusted
)

// Severity says how much a finding weighs.
type Severity string

// The severities.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Error   Severity = "error" // decides the verdict
)

// Finding is one thing that a reader should know.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"` // from a closed set, for programs
	Message  string   `json:"message"`
}

// ThresholdOutcome is one threshold and what was observed.
type ThresholdOutcome struct {
	Expression string   `json:"expression"`
	Observed   *float64 `json:"observed"` // null when there were no samples, which fails
	OK         bool     `json:"ok"`
}

// Number returns a measure for a field that may be null: nil for NaN and infinity, which stand for "no samples".
func Number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// Seconds returns a duration as a measure in seconds.
func Seconds(d time.Duration) *float64 { return Number(d.Seconds()) }
