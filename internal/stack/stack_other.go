//go:build !linux

package stack

import (
	"context"
	"fmt"
	"io"
	"os"
)

// Stack is a set of servers that this process holds: on Linux only.
type Stack struct{}

// Start returns ErrUnsupported: servers as child processes need Linux.
func Start(context.Context, Options) (*Stack, error) {
	return nil, fmt.Errorf("start servers as child processes: %w", ErrUnsupported)
}

// Close implements the same as on Linux.
func (*Stack) Close(context.Context) error { return ErrUnsupported }

// Stop implements Control.
func (*Stack) Stop(context.Context, string) error { return ErrUnsupported }

// Start implements Control.
func (*Stack) Start(context.Context, string) error { return ErrUnsupported }

// Signal implements Control.
func (*Stack) Signal(context.Context, string, os.Signal) error { return ErrUnsupported }

// Admin implements Control.
func (*Stack) Admin(context.Context, string, ...string) error { return ErrUnsupported }

// Hold implements Control.
func (*Stack) Hold(context.Context, string, Trouble) (Release, error) { return nil, ErrUnsupported }

// Addresses implements Control.
func (*Stack) Addresses() Addresses { return Addresses{} }

// CopyLogs implements Control.
func (*Stack) CopyLogs(string) error { return ErrUnsupported }

// Versions implements Control.
func (*Stack) Versions() map[string]string { return nil }

// Deaths returns a closed channel.
func (*Stack) Deaths(context.Context) <-chan Death {
	none := make(chan Death)
	close(none)
	return none
}

// Status returns nothing.
func (*Stack) Status(context.Context) ([]Status, error) { return nil, ErrUnsupported }

// Source returns SourceAuto.
func (*Stack) Source() Source { return SourceAuto }

// Suite returns nothing.
func (*Stack) Suite() string { return "" }

// Log returns nothing.
func (*Stack) Log(context.Context, string) (io.ReadCloser, error) { return nil, ErrUnsupported }
