package stack

// IsChild reports whether this process was started by spillway as the first process of a server's namespaces.
func IsChild() bool { return false }

// RunChild is the whole life of such a process; it returns the exit code.
func RunChild() int { return 1 }
