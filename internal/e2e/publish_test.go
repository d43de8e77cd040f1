package e2e

import "testing"

// mode runs a short steady load in a mode of publishing, with deaths between the two steps.
func mode(t *testing.T, name string, more ...string) run {
	t.Helper()
	s := sharedServers(t)
	args := append([]string{
		"run", "steady", "-r", "300", "-z", "3s", "--set", "thresholds=[]", "--set", "seed=11", "--set", "publish.mode=" + name,
		"--set", "publish.kill_share=0.03",
	}, more...)
	r := runProfile(t, call{args: args, env: s.env()}, 0)
	r.noErrors(t)
	s.nothingLeft(t, r.Run.ID)
	if lag := r.Latency.ScheduleLag; lag == nil || lag.Count != 900 {
		t.Errorf("schedule lag is %+v, want one sample for each of 900 messages", lag)
	}
	return r
}

func TestAnOutboxLosesNothingWhateverDies(t *testing.T) {
	t.Parallel()
	r := mode(t, "outbox", "--set", "load.arrivals=poisson", "--set", "publish.outbox.relays=2", "--set", "publish.outbox.batch=16")
	p, m := r.Publish, r.Messages
	if m.Offered != 900 || m.Confirmed != 900 || m.Applied != 900 || m.OutboxPending != 0 {
		t.Errorf("offered %d, confirmed %d, applied %d, pending %d; want 900, 900, 900, 0", m.Offered, m.Confirmed, m.Applied, m.OutboxPending)
	}
	if *p.Orders != 900 || *p.OrdersWithoutEvent != 0 || *p.EventsWithoutOrder != 0 {
		t.Errorf("%d orders, %d without an event, %d events without an order", *p.Orders, *p.OrdersWithoutEvent, *p.EventsWithoutOrder)
	}
	if p.Relay.Kills == 0 || p.Relay.Skipped != 0 {
		t.Errorf("relays: %+v, want deaths and nothing skipped", p.Relay)
	}
	if m.Publishes-m.Republished != 900 || m.DuplicateEffects != 0 {
		t.Errorf("%d publishes, %d again, %d duplicate effects", m.Publishes, m.Republished, m.DuplicateEffects)
	}
	if lag := r.Latency.RelayLag; lag == nil || lag.Count != 900 || lag.P50 <= 0 {
		t.Errorf("relay lag is %+v, want 900 samples", lag)
	}
}

func TestADualWriteThatCommitsFirstLeavesOrdersWithoutEvents(t *testing.T) {
	t.Parallel()
	r := mode(t, "db-first", "--set", "expect.shed=any", "--set", "expect.confirmed_shortage=any")
	p, m := r.Publish, r.Messages
	if *p.Orders != 900 || *p.OrdersWithoutEvent == 0 || *p.OrdersWithoutEvent != m.Shed || *p.EventsWithoutOrder != 0 {
		t.Errorf("%d orders, %d without an event, %d shed, %d events without an order", *p.Orders, *p.OrdersWithoutEvent, m.Shed, *p.EventsWithoutOrder)
	}
	if m.Confirmed != 900-m.Shed || m.Applied != m.Confirmed {
		t.Errorf("confirmed %d, applied %d, shed %d of 900", m.Confirmed, m.Applied, m.Shed)
	}
}

func TestADualWriteThatPublishesFirstLeavesEventsWithoutOrders(t *testing.T) {
	t.Parallel()
	r := mode(t, "publish-first")
	p, m := r.Publish, r.Messages
	if *p.EventsWithoutOrder == 0 || *p.Orders+*p.EventsWithoutOrder != 900 || *p.OrdersWithoutEvent != 0 || m.Applied != 900 {
		t.Errorf("%d orders, %d events without one, %d orders without an event, %d applied", *p.Orders, *p.EventsWithoutOrder,
			*p.OrdersWithoutEvent, m.Applied)
	}
}

// TestAShapedLoadIsOfferedToTheMessage runs parts of every kind, sizes and keys by distribution, into an inbox in batches.
func TestAShapedLoadIsOfferedToTheMessage(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := runProfile(t, call{env: s.env(), args: []string{
		"run", "steady", "-r", "300", "-z", "5s", "--set", "thresholds=[]", "-q", "64", "--set", "workers.concurrency=64",
		"--set", "load.shape=[{kind: ramp}, {kind: spike, level: 0.5, peak: 1.5}, {kind: steps, levels: [0.2, 0.6]}, {kind: sine}, {kind: flat, level: 0.1}]",
		"--set", "load.sizes={distribution: lognormal, median: 900}", "--set", "load.sku_draw={distribution: zipf, hot_share: 0.5}",
		"--set", "inbox.strategy=batch",
	}}, 0)
	r.noErrors(t)
	// Of the five seconds: a ramp 0.5, a spike 0.5 + 0.2 x 1, steps 0.4, a whole sine 1, flat 0.1, each times 300.
	const offered = 150 + 210 + 120 + 300 + 30
	m := r.Messages
	if m.Offered != offered || m.Applied != offered || m.DuplicateEffects+m.MissingEffects+m.Lost != 0 {
		t.Errorf("offered %d, applied %d, want %d: %+v", m.Offered, m.Applied, offered, m)
	}
	s.nothingLeft(t, r.Run.ID)
}

// TestAPoisonedRowOfABatchParksAlone: the database cannot hold the number of units that some orders ask for.
func TestAPoisonedRowOfABatchParksAlone(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := runProfile(t, call{env: s.env(), args: []string{
		"run", "poison", "-r", "300", "-z", "3s", "--set", "load.warmup=0s", "--set", "thresholds=[]", "-q", "64",
		"--set", "workers.concurrency=64", "--set", "inbox.strategy=batch", "--set", "load.bad=[{kind: out-of-range, share: 0.05}]",
	}}, 0)
	r.noErrors(t)
	m := r.Messages
	if m.Parked == 0 || m.Parked != m.ParkedByReason["constraint"] || m.Applied+m.Parked != 900 || m.RetriesScheduled != 0 {
		t.Errorf("parked %d, of these for a constraint %d, applied %d of 900, %d retries", m.Parked, m.ParkedByReason["constraint"],
			m.Applied, m.RetriesScheduled)
	}
	s.nothingLeft(t, r.Run.ID)
}
