//go:build !linux

package crew

import "syscall"

// attributes keep a child out of the terminal's signals: a Ctrl-C is for the parent, which stops its children in order.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
