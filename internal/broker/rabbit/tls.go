package rabbit

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS says how to trust the broker and how to be trusted by it. The zero value trusts the system's roots, shows no
// certificate, and expects the host name of the URI. It is used with amqps and https addresses only.
type TLS struct {
	CAFile     string // PEM; replaces the system's roots
	CertFile   string // PEM; client certificate, together with KeyFile
	KeyFile    string
	ServerName string // expected name and SNI, when it differs from the host of the address
}

// ErrBadTLS is returned for files that cannot be read or hold no certificate.
var ErrBadTLS = errors.New("the TLS settings are wrong")

// config loads the files. The result is to be cloned for each connection.
func (t TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("%w: read the CA: %w", ErrBadTLS, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: no certificate in %s", ErrBadTLS, t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, fmt.Errorf("%w: a client certificate needs both files, certificate and key", ErrBadTLS)
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("%w: load the client certificate: %w", ErrBadTLS, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// orFromURI fills what is unset from the URI's own query parameters (cacertfile, certfile, keyfile,
// server_name_indication).
func (t TLS) orFromURI(e endpoint) TLS {
	if t.CAFile == "" {
		t.CAFile = e.uri.CACertFile
	}
	if t.CertFile == "" && t.KeyFile == "" {
		t.CertFile, t.KeyFile = e.uri.CertFile, e.uri.KeyFile
	}
	if t.ServerName == "" {
		t.ServerName = e.uri.ServerName
	}
	return t
}
