package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// prometheus is one Prometheus server that finds its targets in files.
type prometheus struct{ base }

func (*prometheus) name() string               { return Prometheus }
func (*prometheus) portCount() int             { return 1 }
func (*prometheus) setup() (childSpec, bool)   { return childSpec{}, false }
func (*prometheus) stopSignal() syscall.Signal { return syscall.SIGTERM }

func (p *prometheus) prepare(ports []int) error {
	p.ports = ports
	if err := p.data.mkdir(p.owner, Prometheus, "servers"); err != nil {
		return err
	}
	return p.data.write(p.owner, p.config(), Prometheus, "prometheus.yml")
}

// config reads two folders of targets: that of the runs, which the caller may write, and that of the stack's servers.
func (p *prometheus) config() string {
	return fmt.Sprintf(`global:
  scrape_interval: 1s
  scrape_timeout: 1s
  evaluation_interval: 1s
scrape_configs:
  - job_name: spillway
    file_sd_configs:
      - files: [%q]
        refresh_interval: 1s
  - job_name: servers
    file_sd_configs:
      - files: [%q]
        refresh_interval: 1s
`, p.data.path(Prometheus, "targets", "*.json"), p.data.path(Prometheus, "servers", "*.json"))
}

func (p *prometheus) spec() childSpec {
	return p.command(Prometheus, nil, p.program,
		"--config.file="+p.data.path(Prometheus, "prometheus.yml"),
		"--storage.tsdb.path="+p.data.path(Prometheus, "data"),
		"--web.listen-address="+p.listen(),
		"--log.level=info",
	)
}

func (p *prometheus) listen() string { return "127.0.0.1:" + strconv.Itoa(p.ports[0]) }

var errAnotherServer = errors.New("another server has the port")

// confirm compares the data folder, which holds the stack's id.
func (p *prometheus) confirm(ctx context.Context) error {
	var flags struct {
		Data map[string]string `json:"data"`
	}
	if err := getJSON(ctx, "http://"+p.listen()+"/api/v1/status/flags", &flags); err != nil {
		return err
	}
	if flags.Data["storage.tsdb.path"] != p.data.path(Prometheus, "data") {
		return errAnotherServer
	}
	return nil
}

func (p *prometheus) addresses(a *Addresses) {
	a.Prometheus = "http://" + p.listen()
	a.TargetsDir = p.data.host(Prometheus, "targets")
}

// watch adds a server of the stack to the targets. The file appears whole, by rename: Prometheus may read at any time.
func (p *prometheus) watch(service string, port int) error {
	targets, err := json.Marshal([]map[string]any{{
		"targets": []string{"127.0.0.1:" + strconv.Itoa(port)},
		"labels":  map[string]string{"service": service},
	}})
	if err != nil {
		return fmt.Errorf("target of %s: %w", service, err)
	}
	part, whole := p.data.host(Prometheus, "servers", service+".part"), p.data.host(Prometheus, "servers", service+".json")
	if err := os.WriteFile(part, targets, 0o644); err != nil {
		return fmt.Errorf("target of %s: %w", service, err)
	}
	return os.Rename(part, whole)
}
