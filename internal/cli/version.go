package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release, set at build time with -ldflags "-X spillway/internal/cli.version=...".
var version = "0.1.0-dev"

// ldRevision is the commit, set in the same way. It is for builds whose toolchain records none, and wins where it is set.
var ldRevision string

func (a *app) newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, revision and Go version",
		Args:  cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			fmt.Fprintf(a.stdout, "spillway %s %s %s %s/%s\n", version, revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}

// revision returns the commit that the binary was built from, with "+dirty" for uncommitted changes; "unknown" outside
// a checkout.
func revision() string {
	if ldRevision != "" {
		return ldRevision
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	rev, dirty := "unknown", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+dirty"
			}
		}
	}
	return rev + dirty
}
