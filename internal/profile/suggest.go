package profile

import "strings"

// Suggest returns the candidate nearest to a word, or "" when none is near: at most a third of its letters may differ,
// and two in any case.
func Suggest(word string, candidates []string) string {
	const maxWord = 64 // longer words are no slips of the pen, and the distance is quadratic
	if len(word) > maxWord {
		return ""
	}
	best, bestDistance := "", max(2, len(word)/3)+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), c); d < bestDistance && d < len(c) {
			best, bestDistance = c, d
		}
	}
	return best
}

// suggestKey returns advice for an unknown key below a path: a near key there, or the place where such a key lives.
func suggestKey(path, name string, known []string) string {
	if near := Suggest(name, known); near != "" {
		return `unknown key; did you mean "` + near + `"?`
	}
	for _, f := range table {
		if strings.HasSuffix(f.Path, "."+name) && !strings.Contains(f.Path, "[]") {
			return `unknown key here; did you mean "` + f.Path + `"?`
		}
	}
	return "unknown key; the keys of " + section(path) + " are " + strings.Join(known, ", ")
}

func section(path string) string {
	if path == "" {
		return "a profile"
	}
	return path
}

// distance is the Levenshtein distance in bytes, with two rows of its table.
func distance(a, b string) int {
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	row := make([]int, len(b)+1)
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			swap := previous[j]
			if a[i] != b[j] {
				swap++
			}
			row[j+1] = min(swap, previous[j+1]+1, row[j]+1)
		}
		previous, row = row, previous
	}
	return previous[len(b)]
}
