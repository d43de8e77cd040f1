package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// errInterrupted is the cause of the context's end after the first Ctrl-C or SIGTERM: stop offering, drain, audit, save.
var errInterrupted = errors.New("interrupted")

// Signals returns a context that ends, with the cause errInterrupted, at the first SIGINT or SIGTERM. After that the
// signals have their default effect again, so a second one aborts; the servers' own first processes see to it that
// nothing stays behind. Call stop to release the handler.
func Signals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1) // the first one counts; later ones take the default road
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(context.Canceled)
	}
}
