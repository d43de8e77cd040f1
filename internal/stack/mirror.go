package stack

import (
	"context"
	"net/url"
	"os/exec"
	"strings"
)

// aptMirror returns the address of the Debian archive that apt uses on this machine; empty when it uses none, as on
// another distribution, or cannot say.
func aptMirror(ctx context.Context) string {
	output, err := exec.CommandContext(ctx, "apt-get", "indextargets",
		"--format", "$(ORIGIN)|$(SUITE)|$(COMPONENT)|$(REPO_URI)", "Created-By: Packages").Output()
	if err != nil {
		return "" // no apt here, and so no mirror of its
	}
	return pickMirror(string(output))
}

// pickMirror finds the archive proper among the index files of apt: main of Debian, but neither its security nor its
// updates archive. A login in the address rules it out, since it would show in the process list.
func pickMirror(indexes string) string {
	for line := range strings.Lines(indexes) {
		fields := strings.SplitN(strings.TrimSpace(line), "|", 4)
		if len(fields) < 4 || fields[0] != "Debian" || fields[2] != "main" || sideArchive(fields[1]) {
			continue
		}
		u, err := url.Parse(fields[3])
		if err == nil && u.User == nil && (u.Scheme == "http" || u.Scheme == "https") {
			return fields[3]
		}
	}
	return ""
}

func sideArchive(suite string) bool {
	for _, part := range []string{"-security", "-updates", "-backports"} {
		if strings.Contains(suite, part) {
			return true
		}
	}
	return false
}

// aptProxy returns the proxy that apt uses for a scheme; empty for none.
func aptProxy(ctx context.Context, scheme string) string {
	output, err := exec.CommandContext(ctx, "apt-config", "dump", "--format", "%v%n", "Acquire::"+scheme+"::Proxy").Output()
	if err != nil {
		return "" // no apt here
	}
	first, _, _ := strings.Cut(string(output), "\n")
	if first = strings.TrimSpace(first); first == "DIRECT" {
		return ""
	}
	return first
}
