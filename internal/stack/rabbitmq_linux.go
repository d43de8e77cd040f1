package stack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"syscall"
)

// rabbitmq is one RabbitMQ node, 3.10 or later, that no other machine can reach.
type rabbitmq struct {
	base
	cluster *cluster
	node    int // its number in the cluster, from 0
}

// Positions in base.ports.
const (
	rabbitAMQP = iota
	rabbitManagement
	rabbitPrometheus
	rabbitDistribution
	rabbitEPMD
	rabbitPorts
)

func (r *rabbitmq) name() string             { return nodeService(r.node) }
func (*rabbitmq) portCount() int             { return rabbitPorts }
func (*rabbitmq) setup() (childSpec, bool)   { return childSpec{}, false }
func (*rabbitmq) stopSignal() syscall.Signal { return syscall.SIGTERM }
func (r *rabbitmq) file(name string) string  { return r.data.path(r.name(), name) }
func (r *rabbitmq) port(position int) string { return strconv.Itoa(r.ports[position]) }

func (r *rabbitmq) prepare(ports []int) error {
	r.ports = ports
	files := map[string]string{
		"rabbitmq.conf":   r.config(),
		"advanced.config": rabbitAdvanced,
		"enabled_plugins": "[rabbitmq_management,rabbitmq_prometheus].\n",
		"environment":     "", // read in place of the distribution's, so that nothing of /etc applies
		".erlang.cookie":  r.cluster.cookie,
	}
	for name, content := range files {
		if err := r.data.write(r.owner, content, r.name(), name); err != nil {
			return err
		}
	}
	return nil
}

// rabbitAdvanced makes quorum queues report every second, not every five: a key that rabbitmq.conf does not have.
const rabbitAdvanced = "[{rabbit,[{quorum_tick_interval,1000}]}].\n"

// config holds the password, and so is the server's alone. The limits keep a small machine from raising an alarm in the
// middle of a run: memory is capped at the share that 4.x uses, free disk at its default.
func (r *rabbitmq) config() string {
	return fmt.Sprintf(`listeners.tcp.1 = 127.0.0.1:%d
management.tcp.ip = 127.0.0.1
management.tcp.port = %d
prometheus.tcp.ip = 127.0.0.1
prometheus.tcp.port = %d
default_user = %s
default_pass = %s
default_user_tags.administrator = true
default_permissions.configure = .*
default_permissions.read = .*
default_permissions.write = .*
vm_memory_high_watermark.relative = %s
disk_free_limit.absolute = %s
log.console = true
log.console.level = info
log.file = false
`, r.ports[rabbitAMQP], r.ports[rabbitManagement], r.ports[rabbitPrometheus], userName, r.cluster.password, MemoryWatermark, DiskFreeLimit) +
		r.cluster.discovery()
}

func (r *rabbitmq) spec() childSpec { return r.command(r.name(), r.environment(), r.program) }

// admin runs the tool that lies beside the server, in the same environment: that names node and cookie.
func (r *rabbitmq) admin(args []string) (childSpec, bool) {
	tool := path.Join(path.Dir(r.program), rabbitTool)
	return r.command(r.name(), r.environment(), append([]string{tool}, args...)...), true
}

// environment names every file and port: the script's own defaults point into /etc and /var/lib/rabbitmq.
func (r *rabbitmq) environment() []string {
	return []string{
		"ERL_EPMD_PORT=" + strconv.Itoa(r.cluster.nameServer(r.ports[rabbitEPMD])),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=" + r.cluster.names[r.node],
		"RABBITMQ_DIST_PORT=" + r.port(rabbitDistribution),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"RABBITMQ_CONF_ENV_FILE=" + r.file("environment"),
		"RABBITMQ_CONFIG_FILE=" + r.file("rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + r.file("advanced.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + r.file("enabled_plugins"),
		"RABBITMQ_FEATURE_FLAGS_FILE=" + r.file("feature_flags"),
		"RABBITMQ_MNESIA_BASE=" + r.file("data"),
		"RABBITMQ_LOG_BASE=" + r.file("log"),
		"RABBITMQ_LOGS=-",
		"RABBITMQ_PID_FILE=" + r.file("pid"),
	}
}

// confirm waits for a node of a cluster until it knows all others. A single one is confirmed by its password.
func (r *rabbitmq) confirm(ctx context.Context) error {
	if len(r.cluster.names) == 1 {
		return nil
	}
	var own Addresses
	r.addresses(&own)
	var known []struct {
		Name    string `json:"name"`
		Running bool   `json:"running"`
	}
	if err := getJSON(ctx, own.Management+"/api/nodes", &known); err != nil {
		return err
	}
	if len(known) < len(r.cluster.names) {
		return fmt.Errorf("%w: node %s knows %d of %d", errNotJoined, r.cluster.names[r.node], len(known), len(r.cluster.names))
	}
	return nil
}

var errNotJoined = errors.New("the cluster is not complete")

func (r *rabbitmq) addresses(a *Addresses) {
	login := url.UserPassword(userName, r.cluster.password)
	node := Node{
		Service: r.name(), Name: r.cluster.names[r.node],
		AMQP:       (&url.URL{Scheme: "amqp", User: login, Host: "127.0.0.1:" + r.port(rabbitAMQP), Path: "/"}).String(),
		Management: (&url.URL{Scheme: "http", User: login, Host: "127.0.0.1:" + r.port(rabbitManagement)}).String(),
	}
	if len(r.cluster.names) > 1 {
		a.Nodes = append(a.Nodes, node)
	}
	if a.AMQP == "" { // the first that is asked
		a.AMQP, a.Management = node.AMQP, node.Management
	}
}
