// Package profiles holds the profiles that come with spillway, built into the binary, so that `spillway run steady` works
// in any folder. They are ordinary profiles: `spillway profile show` prints one as a start for one's own.
package profiles

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"spillway/internal/profile"
)

// FS holds the profiles' files, as NAME.yaml.
//
//go:embed *.yaml drills/*.yaml
var FS embed.FS

// folderOfDrills holds the profiles of the drills: what `spillway drill` runs.
const folderOfDrills = "drills/"

// ErrNotFound is returned for a name that is neither a file nor a profile that comes with spillway.
var ErrNotFound = errors.New("is neither a file nor a profile that comes with spillway")

const extension = ".yaml"

// maxBytes bounds what is read of a file; a longer one is refused by profile.Parse, which sees one byte too many.
const maxBytes = 1<<20 + 1

// List returns the names of the profiles that come with spillway, sorted.
func List() []string {
	return namesIn(".")
}

// Drills returns the names of the drills, sorted.
func Drills() []string { return namesIn(strings.TrimSuffix(folderOfDrills, "/")) }

func namesIn(folder string) []string {
	entries, _ := FS.ReadDir(folder) // an embedded folder is always readable
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, strings.TrimSuffix(e.Name(), extension))
		}
	}
	slices.Sort(names)
	return names
}

// ErrNoDrill is returned for a name that is no drill's.
var ErrNoDrill = errors.New("is no drill")

// Drill returns the profile of a drill in Drills. Its error wraps ErrNoDrill.
func Drill(name string) (profile.Source, error) {
	path := folderOfDrills + name + extension
	data, err := FS.ReadFile(path)
	if err == nil {
		return profile.Source{Name: "profiles/" + path, Data: data}, nil
	}
	if near := profile.Suggest(name, Drills()); near != "" {
		return profile.Source{}, fmt.Errorf("%q %w; did you mean %q?", name, ErrNoDrill, near)
	}
	return profile.Source{}, fmt.Errorf("%q %w (%s)", name, ErrNoDrill, strings.Join(Drills(), ", "))
}

// Get returns the profile of a name in List. Its error wraps ErrNotFound.
func Get(name string) (profile.Source, error) {
	data, err := FS.ReadFile(name + extension)
	if err != nil {
		return profile.Source{}, notFound(name)
	}
	return profile.Source{Name: "profiles/" + name + extension, Data: data}, nil
}

// Resolve returns the profile that an argument means: an existing file, or else a name in List, with or without the
// folder profiles/ and the extension. Its error wraps ErrNotFound, or comes from reading the file.
func Resolve(arg string) (profile.Source, error) {
	if info, err := os.Stat(arg); err == nil && !info.IsDir() {
		return readFile(arg)
	}
	source, err := Get(strings.TrimSuffix(strings.TrimPrefix(arg, "profiles/"), extension))
	if err != nil {
		return profile.Source{}, notFound(arg)
	}
	return source, nil
}

func readFile(path string) (profile.Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return profile.Source{}, err
	}
	defer func() { _ = f.Close() }() // read only: nothing to lose
	return Read(path, f)
}

// Read returns the profile that a reader holds, under the name that problems are to show.
func Read(name string, from io.Reader) (profile.Source, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxBytes))
	if err != nil {
		return profile.Source{}, fmt.Errorf("read profile %s: %w", name, err)
	}
	return profile.Source{Name: name, Data: data}, nil
}

// notFound names the near profile, or all.
func notFound(arg string) error {
	if near := profile.Suggest(arg, List()); near != "" {
		return fmt.Errorf("%q %w; did you mean %q?", arg, ErrNotFound, near)
	}
	return fmt.Errorf("%q %w (%s)", arg, ErrNotFound, strings.Join(List(), ", "))
}
