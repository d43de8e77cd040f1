//go:build !linux

package stack

import (
	"context"
	"fmt"
)

// makeRoot exists on Linux only.
func makeRoot(context.Context, MakeOptions, string) (*Root, error) {
	return nil, fmt.Errorf("make a stack root: %w", ErrUnsupported)
}

// supported says whether servers can be children here.
func supported() error { return ErrUnsupported }
