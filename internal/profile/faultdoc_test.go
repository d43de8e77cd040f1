package profile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheTableOfFaultsIsTheCommittedOne holds docs/faults.md to the table, from which its middle is made.
func TestTheTableOfFaultsIsTheCommittedOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "faults.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- made from internal/profile/faultkind.go by go test ./internal/profile -update -->\n", "<!-- end -->\n"
	head, rest, found := strings.Cut(string(text), begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", path)
	}
	want := head + begin + tableOfFaults() + end + tail
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s is not as the table has it; run the tests of this package with -update", path)
	}
}

func tableOfFaults() string {
	var b strings.Builder
	b.WriteString("| kind | what happens | its own keys | marks |\n|---|---|---|---|\n")
	for _, k := range FaultKinds() {
		marks := make([]string, len(k.Marks))
		for i, m := range k.Marks {
			marks[i] = "`" + m.Name + "`: " + m.Doc
			if m.Told {
				marks[i] += " (proves nothing)"
			}
		}
		keys := ""
		if len(k.Takes) > 0 {
			keys = "`" + strings.Join(k.Takes, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, k.Doc, keys, strings.Join(marks, "; "))
	}
	return b.String()
}

func TestEveryFaultHasAMarkThatProvesSomethingAndKeysThatExist(t *testing.T) {
	t.Parallel()
	for _, k := range FaultKinds() {
		proves := false
		for _, m := range k.Marks {
			proves = proves || !m.Told
		}
		if !proves {
			t.Errorf("%s: no mark proves that it was felt", k.Name)
		}
		for _, name := range k.Takes {
			if field("faults.0."+name) == nil {
				t.Errorf("%s takes %q, which is no key", k.Name, name)
			}
		}
	}
}
