package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"time"
)

// authority issues the certificates of the servers.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	roots       *x509.CertPool
	serial      int64  // of the last certificate
	cert, file  string // the files of the servers: the certificate and its key
}

func newAuthority(dir string) (*authority, error) {
	a := &authority{
		roots: x509.NewCertPool(), serial: 1,
		cert: filepath.Join(dir, "cert.pem"), file: filepath.Join(dir, "key.pem"),
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.roots.AddCert(a.certificate)
	return a, a.issue()
}

// issue replaces the certificate and the key of the servers.
func (a *authority) issue() error {
	a.serial++
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().AddDate(1, 0, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return err
	}
	block := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	if err := replace(a.cert, block("CERTIFICATE", der)); err != nil {
		return err
	}
	return replace(a.file, block("PRIVATE KEY", private))
}

// shows reports whether a server shows the last certificate to new clients.
func (a *authority) shows(address string) bool {
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: a.roots, NextProtos: []string{"h2"}})
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }() // nothing was written
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64() == a.serial
}
