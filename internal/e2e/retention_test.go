package e2e

import (
	"testing"
)

// forgetful is a short run whose inbox knows a message for 2 s after it was due; three in ten of the messages are
// published a second time, so long after their confirm.
func forgetful(t *testing.T, s shared, policy, after string, want int) run {
	t.Helper()
	args := short("-z", "4s", "--set", "seed=11", "--set", "retry.max_age=1s", "--set", "topology.parking_retention=500ms",
		"--set", "inbox.retention.policy="+policy, "--set", "inbox.retention.keep=2s", "--set", "inbox.retention.every=250ms",
		"--set", "inbox.retention.replay_horizon=400ms", "--set", "publish.replay.share=0.3", "--set", "publish.replay.after="+after)
	return runProfile(t, call{args: args, env: s.env()}, want)
}

func TestAReplayWithinTheHorizonIsAbsorbed(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	for _, policy := range []string{"delete", "partitions"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			r := forgetful(t, s, policy, "300ms", 0)
			r.noErrors(t)
			m, f := r.Messages, r.Inbox.Retention
			// Three in ten of 900 are 270; 5 standard deviations are 69.
			if m.Republished < 201 || m.Republished > 339 || m.DuplicateDeliveries != m.Republished || m.Applied != m.Offered {
				t.Errorf("%+v, want each replay absorbed", m)
			}
			if f == nil || f.Policy != policy || f.Purges == 0 || f.Claims == 0 || f.Claims > m.Offered || f.Failed != 0 || f.LongestSeconds > f.BusySeconds {
				t.Errorf("retention %+v of %d messages", f, m.Offered)
			}
			s.nothingLeft(t, r.Run.ID)
		})
	}
}

// The purge is late by its interval and, with partitions, their width; what is replayed 4 s after its confirm is beyond all.
func TestAReplayAfterThePurgeShowsAsDuplicateEffects(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	for _, policy := range []string{"delete", "partitions"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			r := forgetful(t, s, policy, "4s", 4)
			m := r.Messages
			if m.Republished < 201 || m.DuplicateEffects != m.Republished || m.DuplicateDeliveries != 0 || m.Lost+m.MissingEffects != 0 {
				t.Errorf("%+v, want each replay applied again", m)
			}
			r.finding(t, "duplicate-effects")
			r.finding(t, "forgotten")
			s.discard(t, r.Run.ID)
		})
	}
}
