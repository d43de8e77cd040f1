package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"spillway/internal/broker/rabbit"
)

// request sends one request to the management API as the tests' own administrator.
func (s shared) request(t *testing.T, method, path string, body any) []byte {
	t.Helper()
	broker, err := url.Parse(s.uri)
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second) // also used while cleaning up
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, s.management+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := broker.User.Password()
	request.SetBasicAuth(broker.User.Username(), password)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusMultipleChoices {
		t.Fatalf("%s %s: status %d, %v: %s", method, path, response.StatusCode, err, answer)
	}
	return answer
}

// rights are the patterns of what a user may configure, write and read.
type rights struct {
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// everything is the right to all.
var everything = rights{".*", ".*", ".*"}

// brokerUser makes a user with rights in the default virtual host, and returns the servers as that user sees them.
func (s shared) brokerUser(t *testing.T, tags string, may rights) (seen shared, password string) {
	t.Helper()
	name, password := "e2e-"+strings.ToLower(rand.Text()), rand.Text()
	s.request(t, http.MethodPut, "/api/users/"+name, map[string]string{"password": password, "tags": tags})
	t.Cleanup(func() { s.request(t, http.MethodDelete, "/api/users/"+name, nil) })
	s.request(t, http.MethodPut, "/api/permissions/%2F/"+name, may)
	broker, err := url.Parse(s.uri)
	if err != nil {
		t.Fatal(err)
	}
	broker.User = url.UserPassword(name, password)
	seen = s
	seen.uri = broker.String()
	return seen, password
}

// vhost makes a virtual host that the tests' own user may use, and returns the servers with it in the address.
func (s shared) vhost(t *testing.T) (seen shared, name string) {
	t.Helper()
	name = "e2e-" + strings.ToLower(rand.Text())
	broker, err := url.Parse(s.uri)
	if err != nil {
		t.Fatal(err)
	}
	s.request(t, http.MethodPut, "/api/vhosts/"+name, nil)
	t.Cleanup(func() { s.request(t, http.MethodDelete, "/api/vhosts/"+name, nil) })
	s.request(t, http.MethodPut, "/api/permissions/"+name+"/"+broker.User.Username(), everything)
	broker.Path = "/" + name
	seen = s
	seen.uri = broker.String()
	return seen, name
}

// queues returns the names of the queues in a virtual host.
func (s shared) queues(t *testing.T, vhost string) []string {
	t.Helper()
	return s.names(t, "/api/queues/"+vhost)
}

func (s shared) names(t *testing.T, path string) []string {
	t.Helper()
	var all []struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(s.request(t, http.MethodGet, path, nil), &all); err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(all))
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names
}

// role makes a database user without any right but to log in, and returns the servers as that user sees them.
func (s shared) role(t *testing.T) (seen shared, password string) {
	t.Helper()
	name, password := "e2e_"+strings.ToLower(rand.Text()), rand.Text()
	conn := s.connect(t)
	if _, err := conn.Exec(t.Context(), "create role "+name+" login password '"+password+"'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end, err := pgx.Connect(context.Background(), s.postgres)
		if err != nil {
			t.Error(err)
			return
		}
		_, err = end.Exec(context.Background(), "drop owned by "+name+"; drop role "+name)
		if err != nil {
			t.Error(err)
		}
		_ = end.Close(context.Background()) // nothing is in flight
	})
	database, err := url.Parse(s.postgres)
	if err != nil {
		t.Fatal(err)
	}
	database.User = url.UserPassword(name, password)
	seen = s
	seen.postgres = database.String()
	return seen, password
}

// grantCreate lets a role make schemas.
func (s shared) grantCreate(t *testing.T, to shared) {
	t.Helper()
	role, err := url.Parse(to.postgres)
	if err != nil {
		t.Fatal(err)
	}
	database := strings.TrimPrefix(role.Path, "/")
	if _, err := s.connect(t).Exec(t.Context(), "grant create on database "+database+" to "+role.User.Username()); err != nil {
		t.Fatal(err)
	}
}

// database returns the servers with another database in the address.
func (s shared) database(t *testing.T, name string) shared {
	t.Helper()
	database, err := url.Parse(s.postgres)
	if err != nil {
		t.Fatal(err)
	}
	database.Path = "/" + name
	s.postgres = database.String()
	return s
}

// discard removes what a run that did not pass has kept on the servers.
func (s shared) discard(t *testing.T, runID string) {
	t.Helper()
	if err := s.api(t).DeleteVhost(t.Context(), rabbit.VhostPrefix+runID); err != nil {
		t.Error(err)
	}
	name := pgx.Identifier{"spillway_" + runID}.Sanitize()
	if _, err := s.connect(t).Exec(t.Context(), "drop schema if exists "+name+" cascade"); err != nil {
		t.Error(err)
	}
}
