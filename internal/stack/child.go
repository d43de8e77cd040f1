package stack

import (
	"encoding/json"
	"fmt"
	"os"
)

// childVariable is the environment variable by which a first process knows itself and gets its orders.
const childVariable = "SPILLWAY_STACK_CHILD"

// childSpec is what the first process of a namespace is told. It holds no secret: the environment of a process can be
// read by its owner.
type childSpec struct {
	Root      string   `json:"root"`       // folder to enter with chroot; "/" stays on the host
	Dir       string   `json:"dir"`        // working directory, as seen inside
	Argv      []string `json:"argv"`       // the server and its arguments, absolute path first
	Env       []string `json:"env"`        // its whole environment
	UID       int      `json:"uid"`        // user that the server runs as
	GID       int      `json:"gid"`        // its group; supplementary groups are dropped
	OpenFiles uint64   `json:"open_files"` // limit of open files; 0 leaves it alone
	Private   []string `json:"private"`    // folders inside that get an empty file system of their own
}

// IsChild reports whether this process was started by spillway as the first process of a server's namespaces.
func IsChild() bool { return os.Getenv(childVariable) != "" }

// RunChild is the whole life of such a process; it returns the exit code, which is the server's own, 128 + n for a
// server ended by signal n, and 70 when the server could not be started (the reason goes to standard error).
func RunChild() int {
	var spec childSpec
	if err := json.Unmarshal([]byte(os.Getenv(childVariable)), &spec); err != nil {
		fmt.Fprintf(os.Stderr, "spillway stack: orders: %v\n", err)
		return exitChildFailed
	}
	code, err := runChild(spec)
	if err != nil {
		fmt.Fprintf(os.Stderr, "spillway stack: %v\n", err)
		return exitChildFailed
	}
	return code
}

// exitChildFailed tells a failure of ours from one of the server's.
const exitChildFailed = 70
