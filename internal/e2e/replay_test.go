package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// replaying writes a profile that takes its arrivals from a file beside it.
func replaying(t *testing.T, arrivals string) (profile string) {
	t.Helper()
	dir := t.TempDir()
	profile = filepath.Join(dir, "p.yaml")
	for name, text := range map[string]string{
		profile:                            "name: replay\nload: {duration: 3s, shape: [{kind: replay, file: arrivals.csv}]}\n",
		filepath.Join(dir, "arrivals.csv"): arrivals,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return profile
}

// TestARecordingIsReplayedToTheMessage offers 120 messages in the first second, none in the second, and 60 in the third; what the
// file has after that is left out.
func TestARecordingIsReplayedToTheMessage(t *testing.T) {
	t.Parallel()
	s := sharedServers(t)
	var file strings.Builder
	for i := range 120 {
		fmt.Fprintf(&file, "%.3f,512\n", 1000+float64(i)/120)
	}
	for i := range 90 {
		fmt.Fprintf(&file, "%.3f,512\n", 1002+float64(i)/60)
	}
	r := runProfile(t, call{args: []string{"run", replaying(t, file.String())}, env: s.env()}, 0)
	if m := r.Messages; m.Offered != 180 || m.Applied != 180 || m.Lost != 0 {
		t.Errorf("account %+v, want the 180 of the first three seconds", m)
	}
	// The offering ends with the last arrival, so the third second was not a whole one.
	if sent := r.Publish.SentEachSecond; len(sent) != 2 || sent[0] != 120 || sent[1] != 0 {
		t.Errorf("sent each second: %v, want 120 and none", sent)
	}
	sum := sha256.Sum256([]byte(file.String()))
	if got := r.Run.Replays; len(got) != 1 || got[0].File != "arrivals.csv" || got[0].SHA256 != hex.EncodeToString(sum[:]) || got[0].Arrivals != 210 {
		t.Errorf("replays %+v", got)
	}
}

func TestABadRecordingIsToldByItsLines(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ file, says string }{
		"a word":       {"1.0\nsoon\n2.0\n", "line 2"},
		"it goes back": {"1.0\n0.5\n", "line 2"},
		"nothing":      {"# none\n", "no arrival times"},
	} {
		for _, verb := range [][]string{{"profile", "validate"}, {"run"}} {
			p := start(t, call{args: append(verb, replaying(t, row.file))})
			e := p.wait()
			if e.code != 2 || !strings.Contains(e.said(), "load.shape.0.file") || !strings.Contains(e.said(), row.says) {
				t.Errorf("%s, %v: exit %d with %q", name, verb, e.code, e.said())
			}
		}
	}
}
