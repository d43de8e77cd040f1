package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority is a certificate authority of one test, with a server's and a client's certificate.
type authority struct {
	file            string // its certificate, PEM
	clientCert, key string // files
	server          *tls.Config
}

// serverName is what the servers' certificate carries: a name that is not the address.
const serverName = "servers.test"

func newAuthority(t *testing.T) authority {
	t.Helper()
	dir := t.TempDir()
	caKey, ca := certificate(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	serverKey, server := certificate(t, &x509.Certificate{DNSNames: []string{serverName, "localhost"}}, ca, caKey)
	clientKey, client := certificate(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, ca, caKey)
	der, err := x509.MarshalECPrivateKey(clientKey)
	if err != nil {
		t.Fatal(err)
	}
	known := x509.NewCertPool()
	known.AddCert(ca)
	return authority{
		file:       writePEM(t, dir, "ca.pem", "CERTIFICATE", ca.Raw),
		clientCert: writePEM(t, dir, "client.pem", "CERTIFICATE", client.Raw),
		key:        writePEM(t, dir, "key.pem", "EC PRIVATE KEY", der),
		server: &tls.Config{
			MinVersion: tls.VersionTLS12, ClientCAs: known, ClientAuth: tls.RequireAndVerifyClientCert,
			Certificates: []tls.Certificate{{Certificate: [][]byte{server.Raw}, PrivateKey: serverKey}},
		},
	}
}

// certificate signs a template; without a parent by itself.
func certificate(t *testing.T, c, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "e2e"}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, signer = c, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return key, signed
}

func writePEM(t *testing.T, dir, name, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// accept is the server's side of a connection that is TLS from its first byte.
func (a authority) accept(raw net.Conn) (net.Conn, error) {
	conn := tls.Server(raw, a.server)
	err := conn.Handshake()
	return conn, err
}

var errNoTLS = errors.New("the client did not ask for TLS")

// acceptPostgres answers PostgreSQL's SSLRequest (protocol 3.0, "SSLRequest": length 8, code 80877103) and goes on in TLS.
func (a authority) acceptPostgres(raw net.Conn) (net.Conn, error) {
	var request [8]byte
	if _, err := io.ReadFull(raw, request[:]); err != nil {
		return nil, err
	}
	if request != [8]byte{0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f} {
		return nil, errNoTLS
	}
	if _, err := raw.Write([]byte("S")); err != nil {
		return nil, err
	}
	return a.accept(raw)
}

// behindTLS returns the servers as they look behind proxies that end TLS before them.
func (s shared) behindTLS(t *testing.T, a authority) shared {
	t.Helper()
	s.uri = strings.Replace(newProxy(t, hostOf(t, s.uri), a.accept).before(t, s.uri), "amqp:", "amqps:", 1)
	s.management = strings.Replace(newProxy(t, hostOf(t, s.management), a.accept).before(t, s.management), "http:", "https:", 1)
	database, err := url.Parse(newProxy(t, hostOf(t, s.postgres), a.acceptPostgres).before(t, s.postgres))
	if err != nil {
		t.Fatal(err)
	}
	database.Host = net.JoinHostPort("localhost", database.Port()) // verify-full compares this name
	database.RawQuery = url.Values{
		"sslmode": {"verify-full"}, "sslrootcert": {a.file}, "sslcert": {a.clientCert}, "sslkey": {a.key},
	}.Encode()
	s.postgres = database.String()
	return s
}

func TestTLSToAllServersWithAnOwnAuthorityAndClientCertificates(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	plain := sharedServers(t)
	s := plain.behindTLS(t, a)
	flags := []string{"--tls-ca", a.file, "--tls-cert", a.clientCert, "--tls-key", a.key, "--tls-server-name", serverName}
	r := runProfile(t, call{args: short(flags...), env: s.env()}, 0)
	if r.noErrors(t); r.Messages.Applied != 500 {
		t.Errorf("account %+v, want 500 applied", r.Messages)
	}
	plain.nothingLeft(t, r.Run.ID)
}

func TestTLSThatCannotBeTrustedIsRefused(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	s := sharedServers(t).behindTLS(t, a)
	client := []string{"--tls-cert", a.clientCert, "--tls-key", a.key}
	stranger := s
	stranger.postgres = strings.Replace(s.postgres, url.QueryEscape(a.file), url.QueryEscape(other.file), 1)
	with := func(more ...string) []string { return append(more, client...) }
	for name, row := range map[string]refusal{
		"another authority": {servers: s, args: with("--tls-ca", other.file, "--tls-server-name", serverName),
			want: []string{"the broker cannot be reached", "unknown authority"}},
		"another name": {servers: s, args: with("--tls-ca", a.file, "--tls-server-name", "another.test"),
			want: []string{"the broker cannot be reached", "another.test"}},
		"no client certificate": {servers: s, args: []string{"--tls-ca", a.file, "--tls-server-name", serverName},
			want: []string{"the broker cannot be reached", "certificate required"}},
		"another authority at the database": {servers: stranger, args: with("--tls-ca", a.file, "--tls-server-name", serverName),
			want: []string{"PostgreSQL cannot be reached", "unknown authority"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.check(t)
		})
	}
}
