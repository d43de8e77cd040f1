package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"spillway/internal/result"
)

// unreachable is a run whose broker and database are nowhere.
func unreachable(t *testing.T, dir string) {
	t.Helper()
	end := spillway(t, call{args: []string{
		"run", "steady", "--uri", "amqp://guest@127.0.0.1:1/", "--postgres", "postgres://postgres@127.0.0.1:1/postgres", "-o", dir,
	}})
	if end.code != 6 {
		t.Fatalf("exit %d, want 6: %s", end.code, end.said())
	}
}

func TestARunThatCouldNotStartLeavesNoFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	unreachable(t, dir)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}

// TestAnEarlierVerdictIsNotFoundAfterARunThatCouldNotStart: who reads the file after a failed run must not read a pass.
func TestAnEarlierVerdictIsNotFoundAfterARunThatCouldNotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{result.FileResult, "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("earlier"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unreachable(t, dir)
	if _, err := os.Stat(filepath.Join(dir, result.FileResult)); !os.IsNotExist(err) {
		t.Errorf("the earlier result is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Errorf("what is not ours is gone: %v", err)
	}
}
