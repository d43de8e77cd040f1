package crew

import "syscall"

// attributes let a child end with the thread that started it, and keep it out of the terminal's signals: a Ctrl-C is for the
// parent, which stops its children in order.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
