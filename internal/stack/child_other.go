//go:build !linux

package stack

// runChild exists on Linux only: nothing else has these namespaces.
func runChild(childSpec) (int, error) { return 0, ErrUnsupported }
