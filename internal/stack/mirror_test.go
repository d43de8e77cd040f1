package stack

import "testing"

func TestPickMirror(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, indexes, want string }{
		{"the archive proper is taken, not the side archives before it",
			"Debian|stable-updates|main|http://mirror.test/debian/\nDebian|stable-security|main|http://mirror.test/security/\nDebian|stable|main|http://mirror.test/debian/\n",
			"http://mirror.test/debian/"},
		{"other vendors' archives are passed over", "Ubuntu|noble|main|http://mirror.test/ubuntu/\nNode Source|nodistro|main|https://node.test/\n", ""},
		{"only main has what a root needs", "Debian|stable|contrib|http://mirror.test/debian/\n", ""},
		{"an archive on a disc has no suite but its own", "Debian|stable|main|cdrom:[Debian]/\n", ""},
		{"a login would show in the process list", "Debian|stable|main|https://user:pass@mirror.test/debian/\n", ""},
		{"without lists there is no origin", "|||http://mirror.test/debian/\n", ""},
		{"nothing gives nothing", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := pickMirror(row.indexes); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
