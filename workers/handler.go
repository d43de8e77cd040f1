package workers

import (
	"context"
	"errors"
	"time"

	"spillway/internal/broker"
	"spillway/internal/envelope"
	"spillway/internal/event"
	"spillway/internal/postgres"
	"spillway/internal/timebase"
	"spillway/workers/inbox"
	"spillway/workers/retry"
	"spillway/workers/service"
)

// handler is the business code of a worker: it turns one delivery into an effect in the database, or into a classed
// failure. It settles nothing.
type handler struct {
	base    *timebase.Base
	inbox   inbox.Inbox
	time    service.Time
	failing *Failing
	timeout time.Duration // 0 is none
}

// handled is what came of one call.
type handled struct {
	result event.Result
	class  retry.Class  // of a failure
	reason retry.Reason // of a permanent failure
	err    error
	// simulated says that the failure model asked for the failure.
	simulated bool
	dead      bool           // the handler ended without a result
	order     envelope.Order // as far as it could be read
}

// handle runs one attempt, bounded by the handler's time-out.
func (h *handler) handle(ctx context.Context, d *broker.Delivery) handled {
	order, err := envelope.Decode(d.Body)
	var out handled
	switch {
	case d.MessageID == "":
		out = permanent(retry.EmptyID, errEmptyID)
	case err != nil:
		out = permanent(decodeReason(err), err)
	case h.timeout == 0:
		out = h.work(ctx, d, &order)
	default:
		bounded, cancel := context.WithTimeoutCause(ctx, h.timeout, errHandlerTimeout)
		defer cancel()
		out = h.work(bounded, d, &order)
	}
	out.order = order
	return out
}

// work spends the service time, meets the fate that the profile gave the attempt, and applies the message.
func (h *handler) work(ctx context.Context, d *broker.Delivery, o *envelope.Order) handled {
	seq, attempt := d.Headers.Seq, d.Headers.Attempt()
	if t := h.time.Draw(seq, attempt); t > 0 && !broker.Wait(ctx, t) {
		return failed(retry.Transient, context.Cause(ctx))
	}
	fate := h.failing.draw(seq, attempt)
	switch fate {
	case service.Transient:
		return simulated(failed(retry.Transient, errSimulatedTransient))
	case service.Permanent:
		return simulated(permanent(retry.ForbiddenTransition, errSimulatedPermanent))
	case service.Unknown:
		return simulated(failed(retry.Unknown, errSimulatedUnknown))
	case service.Dies:
		return handled{dead: true}
	}
	result, err := h.inbox.Apply(ctx, inbox.Claim{
		MessageID: d.MessageID, Seq: seq, Instance: d.Headers.Instance, SKU: o.Data.SKU, Count: o.Data.Count,
		Refuse: fate == service.Refused, OrderID: o.Aggregate.ID, CorrelationID: o.CorrelationID,
	})
	if err != nil {
		return databaseFailure(err)
	}
	return handled{result: result}
}

var (
	errEmptyID        = errors.New("the message id is empty")
	errHandlerTimeout = errors.New("the handler's time is up")
)

func decodeReason(err error) retry.Reason {
	switch {
	case errors.Is(err, envelope.ErrUnknownSchema):
		return retry.UnknownSchema
	case errors.Is(err, envelope.ErrMissingField):
		return retry.MissingField
	default:
		return retry.BadJSON
	}
}

// databaseFailure classes an error of the inbox (design: transient, permanent, unknown).
func databaseFailure(err error) handled {
	switch postgres.Classify(err) {
	case postgres.Transient:
		return failed(retry.Transient, err)
	case postgres.Permanent:
		return permanent(retry.Constraint, err)
	default:
		return failed(retry.Unknown, err)
	}
}

func simulated(h handled) handled {
	h.simulated = true
	return h
}

func permanent(reason retry.Reason, err error) handled {
	return handled{result: event.Permanent, class: retry.Permanent, reason: reason, err: err}
}

func failed(class retry.Class, err error) handled {
	result := event.Transient
	if class == retry.Unknown {
		result = event.UnknownError
	}
	return handled{result: result, class: class, err: err}
}
