//! A real S3 API on this machine, for the object store's test: PyPI's moto, in an environment of its own.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::Result;
use crate::project::{command, output, python, target};

const MOTO: &str = "moto[server]==5.2.5";

/// A server that ends with its owner.
pub(crate) struct Server {
    child: Child,
    pub(crate) endpoint: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a server on a free port and waits until it answers.
pub(crate) fn start() -> Result<Server> {
    let environment = target().join("s3-env");
    let interpreter = environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let installed = environment.join(MOTO);
    if !installed.exists() {
        println!("making a Python environment for moto");
        output(command(python()?).args(["-m", "venv", "--clear"]).arg(&environment))?;
        output(command(&interpreter).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", MOTO]))?;
        std::fs::write(&installed, "")?;
    }
    // Free now; whoever takes it in between makes the server fail, which is said.
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let mut moto = command(&interpreter);
    moto.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
    let child = moto.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut server = Server { child, endpoint: format!("http://127.0.0.1:{port}") };
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if let Some(status) = server.child.try_wait()? {
            return Err(format!("moto ended: {status}").into());
        }
        if start.elapsed() > Duration::from_secs(60) {
            return Err("moto did not answer within a minute".into());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(server)
}
