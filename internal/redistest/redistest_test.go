package redistest

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

func TestStart(t *testing.T) {
	first, second := Start(t), Start(t, "--maxmemory", "3mb")
	if first.Addr == second.Addr {
		t.Fatalf("both servers are at %s", first.Addr)
	}
	c, err := net.Dial("tcp", second.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "CONFIG GET maxmemory\r\nQUIT\r\n")
	got, err := io.ReadAll(c)
	if err != nil || !strings.Contains(string(got), "3145728") {
		t.Errorf("maxmemory is %q, %v", got, err)
	}
}
