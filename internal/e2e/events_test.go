package e2e

import (
	"net/http"
	"strings"
	"testing"

	"spillway/internal/result"
)

// refusing is a short run in which three messages of ten are refused, so that their events go out.
func refusing(t *testing.T, s shared, binary string, want int, more ...string) run {
	t.Helper()
	args := short(append(append(briefly, "--set", "workers.fail.refused=0.3", "--set", "seed=5"), more...)...)
	return runProfile(t, call{binary: binary, args: args, env: s.env()}, want)
}

// dying are relays that work in small claims and die often: several at once, each replaced.
var dying = []string{
	"--set", "inbox.events.relays=2", "--set", "inbox.events.batch=8", "--set", "inbox.events.kill_share=0.15",
}

// wantEvents fails unless some messages were refused, and each has one row and one event by its id.
func (r run) wantEvents(t *testing.T) *result.Events {
	t.Helper()
	e, m := r.Inbox.Events, r.Messages
	if e == nil || e.Relay == nil {
		t.Fatalf("no events in %+v", r.Inbox)
	}
	// Three in ten of 500 messages are 150; 5 standard deviations are 51.
	if e.Refused < 99 || e.Refused > 201 || e.Refused != m.Refused || e.Rows != e.Refused || e.Distinct != e.Rows || e.Unsent != 0 {
		t.Errorf("%d refused by the account, %+v; want about 150, with as many rows and distinct events", m.Refused, e)
	}
	if m.Applied+m.Refused != m.Offered {
		t.Errorf("applied %d and refused %d of %d", m.Applied, m.Refused, m.Offered)
	}
	if e.Relay.Skipped != 0 || e.Relay.Published < e.Distinct+e.Duplicates {
		t.Errorf("relays %+v left more copies than they published, or skipped rows: %+v", e.Relay, e)
	}
	return e
}

func TestEveryRefusalIsToldOnce(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	for _, strategy := range []string{"transaction", "statement", "batch"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			r := refusing(t, s, "", 0, "--set", "inbox.strategy="+strategy)
			r.noErrors(t)
			if e := r.wantEvents(t); e.Duplicates != 0 || e.Relay.Kills != 0 {
				t.Errorf("%+v, relays %+v; want no copies and no deaths", e, e.Relay)
			}
			s.nothingLeft(t, r.Run.ID)
		})
	}
}

func TestRelaysThatDieTellARefusalTwiceAndNeverNotAtAll(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := refusing(t, s, "", 0, dying...)
	r.noErrors(t)
	e := r.wantEvents(t)
	if e.Duplicates == 0 || e.Relay.Duplicates == 0 || e.Relay.Kills == 0 {
		t.Errorf("%+v, relays %+v; want deaths, and copies for them", e, e.Relay)
	}
	s.nothingLeft(t, r.Run.ID)
}

func TestEventsKeepToThePrefixAndLeaveNothing(t *testing.T) {
	t.Parallel()
	s, vhost := sharedServers(t).vhost(t)
	r := refusing(t, s, "", 0, append(byPrefix("arguments", "read"), "--set", "topology.prefix=mine")...)
	r.noErrors(t)
	r.wantEvents(t)
	if queues := s.queues(t, vhost); len(queues) != 0 {
		t.Errorf("queues are %v, want none left", queues)
	}
	for _, name := range s.names(t, "/api/exchanges/"+vhost) {
		if strings.Contains(name, "inventory") {
			t.Errorf("exchange %q is left", name)
		}
	}
}

// TestEventsWithoutARouteAreNeverMarkedSent runs on a topology of others in which nothing is bound to the exchange of events:
// every publish of one is returned, and confirmed too.
func TestEventsWithoutARouteAreNeverMarkedSent(t *testing.T) {
	t.Parallel()
	s, vhost := sharedServers(t).vhost(t)
	prefix := s.predeclare(t, vhost, "--set", "inbox.events.relay=on")
	s.request(t, http.MethodDelete, "/api/bindings/"+vhost+"/e/"+prefix+".inventory.events/q/"+prefix+".inventory.events/stock.*", nil)
	r := refusing(t, s, "", 4, predeclared(prefix)...)
	e := r.Inbox.Events
	if e == nil || e.Refused == 0 || e.Rows != e.Refused || e.Unsent != e.Rows || e.Distinct != 0 {
		t.Errorf("events %+v, want a row for each refusal, and all of them unsent", e)
	}
	if message := r.finding(t, "events-mismatch"); !strings.Contains(message, "rows unsent") {
		t.Errorf("finding %q does not name what is unsent", message)
	}
	s.discard(t, r.Run.ID)
}

func TestEventsThatNobodyRelaysAreSaid(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	r := refusing(t, s, "", 0, "--set", "inbox.events.relay=off")
	r.noErrors(t)
	if message := r.finding(t, "events-not-relayed"); r.Inbox.Events != nil || !strings.Contains(message, "inbox.events.relay off") {
		t.Errorf("events %+v, finding %q", r.Inbox.Events, message)
	}
}

var (
	// markedUnpublished takes rows of the inventory's outbox for confirmed without publishing them, one in three.
	markedUnpublished = []mutation{{
		"loadgen/outbox/lane.go", "	if err := s.publish(uint64(token), &w.message); err != nil {",
		"	if !r.cfg.Source.orders && w.id[15]%3 == 0 {\n" +
			"		r.settled([]broker.Settlement{{Token: uint64(token), Outcome: broker.Confirmed, At: time.Now()}})\n		return\n	}\n" +
			"	if err := s.publish(uint64(token), &w.message); err != nil {",
	}}
	// refusedUntold refuses without writing the event.
	refusedUntold = []mutation{{"workers/inbox/sql.go", "      from claim where not exists (select from reserve)\n), effect", "      from claim where not exists (select from reserve) and $2::bigint % 3 > 0\n), effect"}}
	// eventsNotRead leaves the queue of the events out of the audit.
	eventsNotRead = []mutation{{
		"internal/experiment/refusals.go", "	for i := range lying {\n", "	for i := range lying[:0] {\n",
	}}
)

// The same scenarios are run with the code as it is by the tests above, and break nothing there.
func TestARefusalThatIsNotToldIsFound(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	for name, row := range map[string]struct {
		mutations []mutation
		strategy  string
		off       func(e *result.Events) bool // what the audit must have seen
	}{
		"a row marked sent without being published": {markedUnpublished, "batch", func(e *result.Events) bool {
			return e.Rows == e.Refused && e.Unsent == 0 && e.Distinct > 0 && e.Distinct < e.Rows
		}},
		"a refusal without its row": {refusedUntold, "statement", func(e *result.Events) bool {
			return e.Rows > 0 && e.Rows < e.Refused && e.Distinct == e.Rows
		}},
		"events that the audit did not read": {eventsNotRead, "batch", func(e *result.Events) bool {
			return e.Rows == e.Refused && e.Unsent == 0 && e.Distinct == 0
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := refusing(t, s, mutant(t, row.mutations), 4, "--set", "inbox.strategy="+row.strategy)
			message := r.finding(t, "events-mismatch")
			if e := r.Inbox.Events; e == nil || !row.off(e) || r.Verdict != result.Fail {
				t.Errorf("verdict %q, events %+v, finding %q", r.Verdict, e, message)
			}
			if m := r.Messages; m.Lost+m.DuplicateEffects+m.MissingEffects != 0 {
				t.Errorf("the account of the messages is %+v, want nothing wrong with it", m)
			}
			s.discard(t, r.Run.ID)
		})
	}
}
