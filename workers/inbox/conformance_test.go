package inbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/workers/inbox"
)

var plenty = postgres.Settings{SKUs: 2, InitialStock: 1000}

func TestTheFirstApplyMovesTheStockOnce(t *testing.T) {
	t.Parallel()
	conform(t, plenty, func(b *bench) {
		b.want(claim(1), event.Applied)
		b.wantState(state{claims: 1, reservedRows: 1, available: 1998, reserved: 2})
	})
}

func TestADuplicateChangesNothing(t *testing.T) {
	t.Parallel()
	conform(t, plenty, func(b *bench) {
		b.want(claim(1), event.Applied)
		for range 3 {
			b.want(claim(1), event.Duplicate)
		}
		b.wantState(state{claims: 1, reservedRows: 1, available: 1998, reserved: 2})
	})
}

func TestTheIdDecidesNotTheRest(t *testing.T) {
	t.Parallel()
	conform(t, plenty, func(b *bench) {
		b.want(claim(1), event.Applied)
		other := claim(1)
		other.Seq, other.SKU, other.Count, other.Refuse = 9, postgres.SKU(1), 50, true
		other.MessageID = strings.ToUpper(other.MessageID)
		b.want(other, event.Duplicate)
		b.wantState(state{claims: 1, reservedRows: 1, available: 1998, reserved: 2})
	})
}

// count applies n claims at once and counts the results.
func (b *bench) count(n int, c func(i int) inbox.Claim) map[event.Result]int {
	b.Helper()
	var mu sync.Mutex
	counts := make(map[event.Result]int)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			result, err := b.inbox.Apply(b.Context(), c(i))
			if err != nil {
				b.Errorf("apply: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			counts[result]++
		})
	}
	all.Wait()
	return counts
}

func TestOfFiftyAtOnceExactlyOneApplies(t *testing.T) {
	t.Parallel()
	conform(t, plenty, func(b *bench) {
		got := b.count(50, func(int) inbox.Claim { return claim(1) })
		if got[event.Applied] != 1 || got[event.Duplicate] != 49 {
			b.Errorf("results are %v, want 1 applied and 49 duplicate", got)
		}
		b.wantState(state{claims: 1, reservedRows: 1, available: 1998, reserved: 2})
	})
}

func TestOneSKUUnderContentionIsNeverOversold(t *testing.T) {
	t.Parallel()
	conform(t, postgres.Settings{SKUs: 1, InitialStock: 41}, func(b *bench) {
		got := b.count(50, func(i int) inbox.Claim { return claim(int64(i)) })
		if got[event.Applied] != 20 || got[event.Refused] != 30 {
			b.Errorf("results are %v, want 20 applied and 30 refused", got)
		}
		b.wantState(state{claims: 50, reservedRows: 20, refusedRows: 30, events: 30, available: 1, reserved: 40})
	})
}

// refusalEvent is the one row of the outbox.
type refusalEvent struct {
	id, message, kind string
	payload           map[string]any
}

func (b *bench) refusalEvent() (e refusalEvent) {
	b.Helper()
	var payload []byte
	const query = `select id::text, message_id::text, type, payload from inventory_outbox`
	err := b.db.Pool().QueryRow(b.Context(), query).Scan(&e.id, &e.message, &e.kind, &payload)
	if err != nil {
		b.Fatalf("read the event: %v", err)
	}
	if err := json.Unmarshal(payload, &e.payload); err != nil {
		b.Fatal(err)
	}
	return e
}

// wantRefusal checks that the claim is refused, with one event that says why, and with an id that a second attempt
// would give again.
func (b *bench) wantRefusal(c inbox.Claim, reason string) {
	b.Helper()
	b.want(c, event.Refused)
	b.want(c, event.Duplicate)
	e := b.refusalEvent()
	if want := envelope.DerivedID(c.MessageID, "stock.refused"); e.id != want || e.message != c.MessageID || e.kind != "stock.refused" {
		b.Errorf("the event is %s %s of %s, want stock.refused %s of %s", e.kind, e.id, e.message, want, c.MessageID)
	}
	for field, want := range map[string]any{
		"reason": reason, "sku": c.SKU, "count": float64(c.Count), "order_id": c.OrderID,
		"correlation_id": c.CorrelationID, "causation_id": c.MessageID,
	} {
		if e.payload[field] != want {
			b.Errorf("the event's %s is %v, want %v", field, e.payload[field], want)
		}
	}
}

func TestTooLittleStockIsRefused(t *testing.T) {
	t.Parallel()
	conform(t, postgres.Settings{SKUs: 1, InitialStock: 1}, func(b *bench) {
		b.wantRefusal(claim(1), "no-stock")
		b.wantState(state{claims: 1, refusedRows: 1, events: 1, available: 1})
	})
}

func TestAnUnknownSKUIsRefused(t *testing.T) {
	t.Parallel()
	conform(t, plenty, func(b *bench) {
		c := claim(1)
		c.SKU = "no such thing"
		b.wantRefusal(c, "no-stock")
		b.wantState(state{claims: 1, refusedRows: 1, events: 1, available: 2000})
	})
}

func TestAForcedRefusalLeavesTheStock(t *testing.T) {
	t.Parallel()
	conform(t, plenty, func(b *bench) {
		c := claim(1)
		c.Refuse = true
		b.wantRefusal(c, "forced")
		b.wantState(state{claims: 1, refusedRows: 1, events: 1, available: 2000})
	})
}

func TestTheEventsIdIsTheSameOnTheNextAttempt(t *testing.T) {
	t.Parallel()
	conform(t, postgres.Settings{SKUs: 1}, func(b *bench) {
		b.want(claim(1), event.Refused)
		first := b.refusalEvent().id
		if _, err := b.db.Pool().Exec(b.Context(), `truncate inbox, inventory_outbox, effect_log`); err != nil {
			b.Fatal(err)
		}
		b.want(claim(1), event.Refused)
		if second := b.refusalEvent().id; second != first {
			b.Errorf("ids are %s and %s", first, second)
		}
	})
}

func TestTheEffectLogTellsEachMessage(t *testing.T) {
	t.Parallel()
	conform(t, plenty, func(b *bench) {
		forced, foreign := claim(2), claim(3)
		forced.Refuse, forced.Instance = true, 4
		foreign.Seq = envelope.NoSeq
		b.want(claim(1), event.Applied)
		b.want(claim(1), event.Duplicate)
		b.want(forced, event.Refused)
		b.want(foreign, event.Applied)
		got := make(map[postgres.EffectRow]int)
		err := b.db.Effects(b.Context(), func(r postgres.EffectRow) error { got[r]++; return nil })
		if err != nil {
			b.Fatal(err)
		}
		for _, want := range []postgres.EffectRow{
			{Seq: 1, Applied: 1}, {Seq: 2, Instance: 4, Refused: 1}, {Seq: -1, Applied: 1},
		} {
			if got[want] != 1 {
				b.Errorf("the log lacks %+v; it has %+v", want, got)
			}
		}
		if len(got) != 3 {
			b.Errorf("the log has %+v, want three messages", got)
		}
	})
}

func TestWhatTheTablesCannotHoldIsPermanent(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*inbox.Claim){
		"an empty id":               func(c *inbox.Claim) { c.MessageID = "" },
		"an id that is no UUID":     func(c *inbox.Claim) { c.MessageID = "order-17" },
		"no units":                  func(c *inbox.Claim) { c.Count = 0 },
		"units that would return":   func(c *inbox.Claim) { c.Count = -2 },
		"more units than fit":       func(c *inbox.Claim) { c.Count = 1 << 31 },
		"a SKU with a zero byte":    func(c *inbox.Claim) { c.SKU = "SKU\x00" },
		"an instance below 0":       func(c *inbox.Claim) { c.Instance = -1 },
		"an instance too large":     func(c *inbox.Claim) { c.Instance = 1 << 31 },
		"an order that is no UTF-8": func(c *inbox.Claim) { c.OrderID = "order-\xff" },
		"a SKU that is no UTF-8":    func(c *inbox.Claim) { c.SKU = "SKU\xff" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conform(t, plenty, func(b *bench) {
				c := claim(1)
				spoil(&c)
				result, err := b.inbox.Apply(b.Context(), c)
				if got := postgres.Classify(err); got != postgres.Permanent || result != 0 {
					b.Errorf("result %v, %v is %v; want permanent", result, err, got)
				}
				b.wantState(state{available: 2000})
				b.want(claim(1), event.Applied) // the connection is clean
			})
		})
	}
}

func TestADoneContextIsTransientAndChangesNothing(t *testing.T) {
	t.Parallel()
	conform(t, plenty, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		_, err := b.inbox.Apply(ctx, claim(1))
		if postgres.Classify(err) != postgres.Transient || errors.Is(err, postgres.ErrCommitUnknown) {
			b.Errorf("error is %v, want transient, with a known outcome", err)
		}
		b.wantState(state{available: 2000})
	})
}

func TestNewKnowsItsStrategies(t *testing.T) {
	t.Parallel()
	for name := range strategies {
		got, err := inbox.New(name, nil, inbox.WithBatch(inbox.BatchOptions{Size: 7}))
		if err != nil || got == nil {
			t.Errorf("New(%q) = %v, %v", name, got, err)
		}
		if err := inbox.Close(t.Context(), got); err != nil {
			t.Errorf("close %q: %v", name, err)
		}
	}
	if _, err := inbox.New("hope", nil); !errors.Is(err, inbox.ErrUnknownStrategy) {
		t.Errorf("error is %v, want ErrUnknownStrategy", err)
	}
}
