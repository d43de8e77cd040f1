package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"spillway/profiles"
)

var (
	testNamed  = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	drillNamed = regexp.MustCompile("drill `([a-z-]+)`")
	testFunc   = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
)

func TestEveryCaseFromTheFieldIsHeldByTestsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(suite.repository, "docs", "field-cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := testsOf(t, suite.repository)
	rows := 0
	for _, line := range strings.Split(string(page), "\n") {
		tests := testNamed.FindAllStringSubmatch(line, -1)
		if len(tests) > 0 {
			rows++
		}
		for _, name := range tests {
			if !there[name[1]] {
				t.Errorf("%s is no test: %s", name[1], line)
			}
		}
		for _, name := range drillNamed.FindAllStringSubmatch(line, -1) {
			if !slices.Contains(profiles.Drills(), name[1]) {
				t.Errorf("%s is no drill: %s", name[1], line)
			}
		}
	}
	if rows != 10 {
		t.Errorf("%d cases with tests, want 10", rows)
	}
}

func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, name := range testFunc.FindAllStringSubmatch(string(data), -1) {
			there[name[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}
