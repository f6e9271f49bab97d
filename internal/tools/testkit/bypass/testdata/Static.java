import java.io.File;
import org.apache.catalina.Lifecycle;
import org.apache.catalina.core.StandardContext;
import org.apache.catalina.servlets.DefaultServlet;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.SimpleInstanceManager;

/** Serves the files of a folder as a servlet container does, and prints its port. */
class Static {
    public static void main(String[] args) throws Exception {
        var tomcat = new Tomcat();
        tomcat.setBaseDir(args[1]);
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        // Not Tomcat.addContext: it needs the annotations of Jakarta EE, a package of its own.
        var files = new StandardContext();
        files.setPath("");
        files.setDocBase(new File(args[0]).getAbsolutePath());
        files.setInstanceManager(new SimpleInstanceManager());
        files.addLifecycleListener(event -> {
            if (event.getType().equals(Lifecycle.CONFIGURE_START_EVENT)) {
                files.setConfigured(true);
            }
        });
        tomcat.getHost().addChild(files);
        Tomcat.addServlet(files, "files", new DefaultServlet());
        files.addServletMappingDecoded("/", "files");
        tomcat.start();
        System.out.println("port " + tomcat.getConnector().getLocalPort());
        tomcat.getServer().await();
    }
}
