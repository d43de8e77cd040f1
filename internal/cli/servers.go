package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"spillway/internal/broker/rabbit"
	"spillway/internal/experiment"
	"spillway/internal/postgres"
	"spillway/internal/profile"
	"spillway/internal/stack"
)

// serverFlags say where the servers are. Secrets come from the environment or from files, so that none stands in the
// process list.
type serverFlags struct {
	uris         []string
	management   []string
	postgres     string
	username     string
	passwordFile string
	tls          rabbit.TLS
	allowHosts   []string
	source       string
	root         string
}

func (f *serverFlags) register(flags *pflag.FlagSet, getenv func(string) string) {
	flags.StringArrayVar(&f.uris, "uri", nil, "AMQP address, repeatable for the nodes of a cluster; default: servers of our own")
	flags.StringArrayVar(&f.management, "management", nil, "management API address, repeatable for the nodes of a cluster (default: port 15672 of the brokers' hosts)")
	flags.StringVar(&f.postgres, "postgres", "", "PostgreSQL address; its password from $PGPASSWORD or a password file; default: a server of our own")
	flags.StringVar(&f.username, "username", "", "broker user, in place of the one in --uri")
	flags.StringVar(&f.passwordFile, "password-file", "", "file with the broker password ($SPILLWAY_PASSWORD holds the password itself)")
	flags.StringVar(&f.tls.CAFile, "tls-ca", "", "certificate authority of the broker (PEM file)")
	flags.StringVar(&f.tls.CertFile, "tls-cert", "", "client certificate for the broker (PEM file)")
	flags.StringVar(&f.tls.KeyFile, "tls-key", "", "its key (PEM file)")
	flags.StringVar(&f.tls.ServerName, "tls-server-name", "", "name that the broker's certificate must carry")
	flags.StringArrayVar(&f.allowHosts, "allow-host", nil, "a host that is not this machine and may be loaded, repeatable")
	flags.StringVar(&f.source, "source", "", "where servers of our own come from: root, host or compose; default: the first that serves")
	flags.StringVar(&f.root, "root", getenv("SPILLWAY_STACK_ROOT"), "folder of the stack root, if not the usual one ($SPILLWAY_STACK_ROOT)")
}

// servers returns the addresses to use, starting what was not given, and a function that stops what was started.
func (a *app) servers(ctx context.Context, f serverFlags, p *profile.Profile, log io.Writer) (experiment.Servers, func() error, error) {
	nothing := func() error { return nil }
	given, err := a.given(f, p)
	if err != nil {
		return given, nothing, err
	}
	if err := checkGiven(given, f); err != nil {
		return given, nothing, err
	}
	needed := f.missing(p)
	if len(needed) == 0 {
		given.Lasting = true
		return given, nothing, nil
	}
	chosen, err := stack.Choose(ctx, stack.Options{
		Services: needed, Nodes: p.Topology.Nodes, Source: stack.Source(f.source), Root: f.root, Progress: log,
	})
	if err != nil {
		return given, nothing, environmentError(err)
	}
	describe(log, chosen)
	complete(&given, chosen, f)
	return given, func() error { return closeStack(chosen) }, nil
}

// checkGiven finds what is wrong with the addresses as they are written, before anything is started or dialled.
func checkGiven(given experiment.Servers, f serverFlags) error {
	switch source := stack.Source(f.source); source {
	case stack.SourceAuto, stack.SourceRoot, stack.SourceHost, stack.SourceCompose:
	default:
		return usageError(fmt.Errorf("%w: --source %q: want root, host or compose", errFlag, f.source))
	}
	var hosts []string
	if len(given.Broker.URIs) > 0 {
		broker, err := rabbit.New(given.Broker)
		if err != nil {
			return usageError(fmt.Errorf("--uri: %w", err))
		}
		hosts = broker.Hosts()
	}
	if given.Management.URL != "" {
		management, err := rabbit.NewManagement(given.Management)
		if err != nil {
			return usageError(fmt.Errorf("--management: %w", err))
		}
		hosts = append(hosts, management.Hosts()...)
	}
	if given.Postgres != "" {
		database, err := postgres.Hosts(given.Postgres)
		if err != nil {
			return usageError(fmt.Errorf("--postgres: %w", err))
		}
		hosts = append(hosts, database...)
	}
	if err := experiment.CheckHosts(hosts, f.allowHosts); err != nil {
		return environmentError(err)
	}
	return nil
}

// missing lists the services that the profile needs and that were not given by address. Prometheus comes, for the run's
// metrics, when none was given.
func (f *serverFlags) missing(p *profile.Profile) []string {
	var needed []string
	if len(f.uris) == 0 {
		needed = append(needed, stack.RabbitMQ)
	}
	if f.postgres == "" && p.NeedsDatabase() {
		needed = append(needed, stack.PostgreSQL)
	}
	if len(f.uris) == 0 && f.postgres == "" {
		needed = append(needed, stack.Prometheus)
	}
	return needed
}

// given turns the flags into addresses, as far as they go.
func (a *app) given(f serverFlags, p *profile.Profile) (experiment.Servers, error) {
	password, err := a.password(f.passwordFile)
	if err != nil {
		return experiment.Servers{}, err
	}
	s := experiment.Servers{
		Broker:   rabbit.Config{URIs: f.uris, Username: f.username, Password: password, TLS: f.tls},
		Postgres: f.postgres,
	}
	if len(f.uris) == 0 || p.Topology.Management == rabbit.ManagementNone {
		return s, nil
	}
	s.Management, err = managementOf(f, password)
	return s, err
}

func (a *app) password(file string) (string, error) {
	if file == "" {
		return a.getenv("SPILLWAY_PASSWORD"), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", usageError(fmt.Errorf("--password-file: %w", err))
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// managementOf returns the management addresses: the given ones, or the usual port of the brokers' hosts, with the first
// broker's own credentials where the first address has none.
func managementOf(f serverFlags, password string) (rabbit.ManagementConfig, error) {
	all := f.management
	var broker *url.URL
	for i, text := range f.uris {
		u, err := url.Parse(text)
		if err != nil {
			return rabbit.ManagementConfig{}, usageError(errors.New("--uri is not an address such as amqp://user@host:5672/vhost"))
		}
		if i == 0 {
			broker = u
		}
		if usual := usualManagement(u); len(f.management) == 0 && !slices.Contains(all, usual) {
			all = append(all, usual)
		}
	}
	c := rabbit.ManagementConfig{URL: all[0], Others: all[1:], Username: f.username, Password: password, TLS: f.tls}
	if own, err := url.Parse(c.URL); err == nil && own.User == nil && c.Username == "" && broker.User != nil {
		c.Username = broker.User.Username()
		if fromURI, ok := broker.User.Password(); ok && password == "" {
			c.Password = fromURI
		}
	}
	return c, nil
}

// usualManagement returns the port of the management API at a broker's host.
func usualManagement(broker *url.URL) string {
	if broker.Scheme == "amqps" {
		return "https://" + net.JoinHostPort(broker.Hostname(), "15671")
	}
	return "http://" + net.JoinHostPort(broker.Hostname(), "15672")
}

// complete fills in what the stack provides.
func complete(s *experiment.Servers, chosen *stack.Chosen, f serverFlags) {
	at := chosen.Addresses()
	s.Control, s.TargetsDir = chosen.Control, at.TargetsDir
	s.Lasting = chosen.Attached || len(f.uris) > 0 || f.postgres != ""
	if len(f.uris) == 0 {
		s.Broker.URIs = at.URIs()
		s.Management = rabbit.ManagementConfig{URL: at.Management}
		for _, n := range at.Nodes {
			if n.Management != at.Management {
				s.Management.Others = append(s.Management.Others, n.Management)
			}
		}
	}
	if f.postgres == "" {
		s.Postgres = at.Postgres
	} else {
		s.Control = nil // a fault must not stop another database than the one in use
	}
}

func describe(log io.Writer, chosen *stack.Chosen) {
	versions := chosen.Versions()
	for _, service := range slices.Sorted(maps.Keys(versions)) {
		fmt.Fprintf(log, "%s %s\n", service, versions[service])
	}
}

// stackCloseTimeout bounds the orderly stop of our own servers; the stack forces what is left.
const stackCloseTimeout = 30 * time.Second

func closeStack(chosen *stack.Chosen) error {
	ctx, cancel := context.WithTimeout(context.Background(), stackCloseTimeout)
	defer cancel()
	return chosen.Close(ctx)
}
