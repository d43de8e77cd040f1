// Package experiment is one run as a protocol: preflight -> provision -> warm-up -> load with faults -> drain -> audit ->
// save. It joins the parts and decides nothing about messages; the verdict is the ledger's and the thresholds'.
//
// Phases of stopping: when the caller's context ends, offering stops at once, the backlog may drain for as long as the
// profile allows, then the audit reads the servers and everything is saved. Nothing of a run is left behind on the
// servers after a run that passed, nor after one that never got to its load.
package experiment

import (
	"errors"
	"io"
	"time"

	"spillway/internal/broker/rabbit"
	"spillway/internal/ledger"
	"spillway/internal/profile"
	"spillway/internal/stack"
)

// ErrEnvironment marks what keeps a run from starting and is not the profile's fault: a server that is unreachable, refuses
// the login, lacks a right or is too old; a results folder that cannot be written; a fault that this machine cannot have.
var ErrEnvironment = errors.New("environment")

// Servers says where a run finds its servers.
type Servers struct {
	Broker     rabbit.Config
	Management rabbit.ManagementConfig // an empty URL is none
	Postgres   string                  // URI
	Control    stack.Control           // the stack that they belong to; nil when given by address
	TargetsDir string                  // where the stack's Prometheus looks for what to scrape; "" is nowhere
	Lasting    bool                    // they outlive the run
}

// Options is everything a run needs.
type Options struct {
	Profile     *profile.Profile
	Servers     Servers
	RunID       string
	Dir         string // the run's own folder; made by Run
	Labels      map[string]string
	Version     string
	Revision    string
	Keep        bool          // leave vhost and schema after the run
	Replays     Replays       // files of arrival times that the profile names; see Replays.Reader
	Unobserved  bool          // no ledger, recorders or metrics hear of messages: shows what these cost, and proves nothing
	AllowHosts  []string      // hosts that are not loopback and may be loaded
	MetricsAddr string        // where /metrics is served; "" is the default
	MaxTime     time.Duration // the offering ends after this time, and what was offered is drained; 0 is none
	Log         io.Writer     // progress in words, one line a step
	Progress    func(Progress)
}

// Progress is what a panel shows, once a second.
type Progress struct {
	Phase    string
	Elapsed  time.Duration // since the first arrival was due
	Planned  time.Duration // warm-up and load
	Counts   ledger.Counts
	Since    ledger.Counts // the counts a second ago
	View     ledger.View
	Breaker  string
	Faults   []string // under way
	Interval time.Duration
}

// Phase names, in their order.
const (
	PhaseWarmup  = "warm-up"
	PhaseLoad    = "load"
	PhaseDrain   = "drain"
	PhaseRedrive = "redrive"
	PhaseAudit   = "audit"
)
