package stack

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
)

// account is a user by number. In a root the numbers of its own /etc/passwd count; on the host they may mean somebody
// else.
type account struct{ uid, gid int }

// callerAccount is who started spillway: under sudo the person behind it, so that a run without root rights can write
// scrape targets.
func callerAccount() account {
	a := account{os.Getuid(), os.Getgid()}
	var sudo account
	if _, err := fmt.Sscan(os.Getenv("SUDO_UID")+" "+os.Getenv("SUDO_GID"), &sudo.uid, &sudo.gid); err == nil && a.uid == 0 {
		return sudo
	}
	return a
}

// userName is the login of both RabbitMQ and PostgreSQL.
const userName = "spillway"

// secret returns a fresh password of 128 random bits, safe in URIs and configuration files.
func secret() string { return randomHex(16) }

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: the runtime ends the program instead
	return hex.EncodeToString(b)
}
