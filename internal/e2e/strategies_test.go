package e2e

import "testing"

// TestEveryStrategyBringsWhatFailedBack lets one attempt in five fail. The account is the same whichever way they come back: by a
// copy in a queue, or by the broker, which then counts the attempts and not the message.
func TestEveryStrategyBringsWhatFailedBack(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	for name, row := range map[string]struct {
		sets   []string
		copied bool // or returned
		parked bool
	}{
		"four shards of each tier":      {sets: []string{"topology.shards=4", "topology.jitter=false"}, copied: true},
		"one queue for all delays":      {sets: []string{"topology.strategy=message-ttl"}, copied: true},
		"delayed by the broker":         {sets: []string{"topology.strategy=delayed-retry"}},
		"at once":                       {sets: []string{"topology.strategy=requeue"}},
		"at once, and counted by nacks": {sets: []string{"topology.strategy=requeue", "topology.return_by=nack"}},
		"held by a sleeping handler":    {sets: []string{"topology.strategy=sleep"}},
		"a budget over all messages":    {sets: []string{"retry.tokens={ratio: 0.2, floor: 1}", "workers.fail.transient=0.5", "expect.parked=any"}, copied: true, parked: true},
		"parked after three attempts":   {sets: []string{"topology.strategy=requeue", "retry.attempts=3", "workers.fail.transient=0.5", "expect.parked=any"}, parked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := short("--set", "topology.time_scale=0.01", "--set", "workers.fail.transient=0.2", "--set", "topology.delivery_limit=-1")
			for _, set := range row.sets {
				args = append(args, "--set", set)
			}
			r := runProfile(t, call{args: args, env: s.env()}, 0)
			m := r.Messages
			if m.Lost+m.DuplicateEffects+m.MissingEffects != 0 || m.Applied+m.Parked != m.Offered || (m.Parked > 0) != row.parked {
				t.Errorf("account %+v", m)
			}
			if m.RetriesScheduled < 50 || m.Delivered < m.Offered+m.RetriesScheduled || (m.Redelivered >= m.RetriesScheduled) == row.copied {
				t.Errorf("%d retries, %d deliveries, %d of them of messages that the broker had given out before", m.RetriesScheduled, m.Delivered, m.Redelivered)
			}
			s.nothingLeft(t, r.Run.ID)
		})
	}
}
